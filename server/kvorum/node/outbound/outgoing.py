"""The way out of a node: opens its connections to other nodes."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Iterable
from typing import Final
from weakref import WeakSet

from kvorum.metadata.address import Address
from kvorum.metadata.image import MetadataImage
from kvorum.node.clock import Clock, SystemClock
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ConnectFailedError,
    SaslAuthenticationError,
)
from kvorum.security.client_security import NO_SECURITY, ClientSecurity

_CLOCK: Final = SystemClock()
_LOGGED_CHARACTERS_MAX: Final = 1_000
"""More than Kafka's texts have."""
_log: Final = logging.getLogger(__name__)


class Outgoing:
    """Opens connections, except to addresses that are cut off: tests partition clusters with it."""

    def __init__(self, security: ClientSecurity = NO_SECURITY, clock: Clock = _CLOCK) -> None:
        self._security = security
        self._cut_off: set[Address] = set()
        self._opened: WeakSet[ClientConnection] = WeakSet()
        self._refusals: dict[Address, RareEvents] = {}
        self._clock = clock

    def secured(self, security: ClientSecurity) -> Outgoing:
        """Return one whose connections have this security; both are cut off together."""
        secured = Outgoing(security, self._clock)
        secured._cut_off = self._cut_off
        secured._opened = self._opened
        return secured

    def use_tls(self, context: ssl.SSLContext) -> None:
        """Have new connections use another context of TLS."""
        self._security = self._security._replace(tls=context)

    async def open(self, address: Address, *, client_id: str, timeout_ms: int) -> ClientConnection:
        """Open a connection as `ClientConnection.open` does; raises ClientConnectionError."""
        self._check(address)
        try:
            connection = await ClientConnection.open(
                host=address.host,
                port=address.port,
                client_id=client_id,
                timeout_ms=timeout_ms,
                security=self._security,
            )
        except SaslAuthenticationError as error:
            self._note_refusal(address, client_id, error)
            raise
        try:
            self._check(address)
        except ConnectFailedError:
            connection.abort()
            raise
        self._opened.add(connection)
        return connection

    def cut_off(self, addresses: Iterable[Address]) -> None:
        """Refuse connections to these addresses, and only these; all open ones are closed."""
        self._cut_off.clear()
        self._cut_off.update(addresses)
        for connection in list(self._opened):
            connection.abort()

    def _note_refusal(
        self, address: Address, client_id: str, error: SaslAuthenticationError
    ) -> None:
        """Log that a node does not let this one in, unless that was logged a moment ago.

        Only an operator can mend this; all requests to that node fail until then.
        """
        refusals = self._refusals.setdefault(address, RareEvents())
        suppressed_count = refusals.happened(self._clock.monotonic_ms())
        if suppressed_count is not None:
            _log.error(
                LogEvent(
                    f"Connection to {address} failed authentication due to: {_in_one_line(error)}",
                    client_id=client_id,
                    others=suppressed_count or None,
                )
            )

    def _check(self, address: Address) -> None:
        if address in self._cut_off:
            raise ConnectFailedError(f"{address} is cut off")


def _in_one_line(error: Exception) -> str:
    """Return a text that a peer may have written, so that the log keeps its form."""
    return json.dumps(str(error)[:_LOGGED_CHARACTERS_MAX])[1:-1]


def address_of_broker(image: MetadataImage, broker_id: int, listener: str) -> Address:
    """Return the address of a broker on a listener; raises ConnectFailedError without one."""
    broker = image.cluster.brokers.get(broker_id)
    endpoint = None if broker is None else broker.endpoint(listener)
    if endpoint is None:
        raise ConnectFailedError(f"broker {broker_id} has no listener {listener}")
    return Address(endpoint.host, endpoint.port)

"""Limits of a node's simultaneous connections, below its file descriptors.

As in Kafka's ConnectionQuotas there are four: of all connections to the listeners of a role
(``max.connections``), of those to one listener (``listener.name.NAME.max.connections``), and of
those from one address (``max.connections.per.ip``, and its overrides). Brokers reach each other
whatever clients do: their listener has places of its own (KIP-402), and so has the other role.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.configs_image import ClientQuotasImage
from kvorum.node.clock import Clock
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.open_file_limit import connection_count_max
from kvorum.node.serving.connection_rates import (
    AT_ONCE,
    TOO_MANY_WAIT,
    Admission,
    ConnectionRates,
    normalized,
    protected_listener,
    rate_limits,
)

RESERVED_SHARE: Final = 8
"""One in so many places is for the listener between brokers alone, and one for the controllers'."""
_log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """The maxima of simultaneous connections to the listeners of a role."""

    total_max: int
    """The connections of all clients together."""
    per_address_max: int
    overrides: Mapping[str, int] = MappingProxyType({})
    """The maxima of single addresses, in place of `per_address_max`."""
    of_listeners: Mapping[str, int] = MappingProxyType({})
    protected_listener: str | None = None
    """The listener between brokers, if it is one of several."""
    protected_count: int = 0
    """The connections that the protected listener may have beyond `total_max`."""

    def of_address(self, address: str) -> int:
        """Return the maximum of one address."""
        return self.overrides.get(address, self.per_address_max)

    def total_max_for(self, listener: str) -> int:
        """Return the number of all connections at which `listener` takes no other one."""
        is_protected = listener == self.protected_listener
        return self.total_max + self.protected_count if is_protected else self.total_max

    @property
    def place_count(self) -> int:
        """The number of connections, and so of descriptors, that all listeners may have."""
        return self.total_max + self.protected_count


class ConnectionQuotas:
    """Counts the open connections to the listeners of a role, and decides on each new one."""

    def __init__(self, limits: Limits, clock: Clock, rates: ConnectionRates | None = None) -> None:
        self._limits = limits
        self._rates = rates
        self._clock = clock
        self.total = 0
        """The number of open connections."""
        self._by_address: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._refusals = RareEvents()

    def admit(self, listener: str, address: str) -> bool:
        """Count one more connection from `address`; False, and uncounted, if that is too many."""
        address = normalized(address)
        limits = self._limits
        of_listener = limits.of_listeners.get(listener, limits.place_count)
        if (
            self.total >= limits.total_max_for(listener)
            or self._by_listener[listener] >= of_listener
            or self._by_address[address] >= limits.of_address(address)
        ):
            self._complain("too many are open", listener, address)
            return False
        self.total += 1
        self._by_address[address] += 1
        self._by_listener[listener] += 1
        return True

    def pace(self, listener: str, address: str) -> Admission:
        """Decide when an admitted connection is served, or closed because it exceeds its rate."""
        if self._rates is None:
            return AT_ONCE
        address = normalized(address)
        admission = self._rates.admit(listener, address, self._clock.monotonic_ms())
        if admission is TOO_MANY_WAIT:
            self._complain("too many wait for their turn", listener, address)
        return admission

    def release(self, listener: str, address: str) -> None:
        """Count one connection from `address` less."""
        address = normalized(address)
        self.total -= 1
        self._by_listener[listener] -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _complain(self, reason: str, listener: str, address: str) -> None:
        suppressed_count = self._refusals.happened(self._clock.monotonic_ms())
        if suppressed_count is None:
            return
        _log.warning(
            LogEvent(
                f"Refused a connection: {reason}",
                client=address,
                listener=listener,
                others=suppressed_count or None,
                open=self.total,
                total_max=self._limits.total_max_for(listener),
                per_address_max=self._limits.of_address(address),
            )
        )


def quotas_of_node(
    config: NodeConfig, image: Callable[[], ClientQuotasImage], clock: Clock
) -> Mapping[str, ConnectionQuotas]:
    """Return the quotas of each listener, which those of a role share; raises NodeStartError.

    NodeStartError is for a host without an address in ``max.connections.per.ip.overrides``.
    """
    found: dict[str, ConnectionQuotas] = {}
    for limits, listeners in _limits_of_roles(config):
        overrides = {
            normalized(address): maximum
            for host, maximum in config.network.connections_per_ip_overrides.items()
            for address in _addresses(host)
        }
        rates = ConnectionRates(rate_limits(config, listeners), image)
        quotas = ConnectionQuotas(limits._replace(overrides=overrides), clock, rates)
        found.update(dict.fromkeys(listeners, quotas))
    return found


def connection_places(config: NodeConfig) -> int:
    """Return the number of connections, and so of descriptors, that a node may have."""
    return sum(limits.place_count for limits, _ in _limits_of_roles(config))


def _limits_of_roles(config: NodeConfig) -> Iterator[tuple[Limits, Collection[str]]]:
    """Yield the limits of each role's listeners, whose places together are all that there are."""
    brokers, controllers = (
        frozenset(listener.name for listener in role)
        for role in (config.listeners.brokers, config.listeners.controllers)
    )
    places = connection_count_max(has_logs=config.is_broker)
    of_controllers = places // RESERVED_SHARE if brokers and controllers else places
    if controllers:
        yield _limits(config, controllers, of_controllers), controllers
    if brokers:
        yield _limits(config, brokers, places - of_controllers if controllers else places), brokers


def _limits(config: NodeConfig, listeners: Collection[str], places: int) -> Limits:
    network = config.network
    protected = protected_listener(config, listeners)
    protected_count = 0
    if protected is not None:
        protected_max = network.connections_max_of_listeners[protected]
        protected_count = min(protected_max, places // RESERVED_SHARE)
    return Limits(
        total_max=min(network.connections_max, places - protected_count),
        per_address_max=network.connections_per_ip_max,
        of_listeners={
            name: maximum
            for name, maximum in network.connections_max_of_listeners.items()
            if name in listeners
        },
        protected_listener=protected,
        protected_count=protected_count,
    )


def _addresses(host: str) -> set[str]:
    try:
        found = socket.getaddrinfo(host, None)
    except OSError as error:
        raise NodeStartError(
            f"max.connections.per.ip.overrides names a host without an address: {host}: {error}"
        ) from error
    return {str(place[0]) for *_, place in found}

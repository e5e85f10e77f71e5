"""Kafka's NodeToControllerChannelManager: requests to the active controller, with retries."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

from kvorum.metadata.address import Address
from kvorum.node.coroutines import Lock, sleep
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ClientConnectionError,
    NoCommonVersionError,
)
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.runtime import Runtime
from kvorum.node.tasks import awaiting
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

FIRST_RETRY_MS = 5
RETRY_MS_MAX = 100
CONNECT_TIMEOUT_MS = 10_000
_NO_VERSIONS: Final[Mapping[int, tuple[int, int]]] = MappingProxyType({})
Response = TypeVar("Response", bound=Message)
_log = logging.getLogger(__name__)


class ControllerUnreachableError(Exception):
    """No active controller answered in time."""


class NodeToControllerChannelManager:
    """Sends requests to the active controller, over one connection for one purpose.

    After a lost connection, or the response NOT_CONTROLLER, the request is sent again to the
    current leader until its time, `timeout_ms` in total, is over. Once another leader is known,
    requests go to that one, though a leader that is frozen keeps its connections; those that it has
    received wait for its response.
    """

    def __init__(
        self,
        node_id: int,
        purpose: str,
        find_leader: Callable[[], Address | None],
        *,
        why_no_leader: Callable[[], str],
        timeout_ms: int,
        runtime: Runtime,
        outgoing: Outgoing,
    ) -> None:
        self._client_id = str(node_id)
        self._purpose = purpose
        self._timeout_ms = timeout_ms
        self._find_leader = find_leader
        self._why_no_leader = why_no_leader
        self.failure = ""
        """Why the last try of a request got no response of the active controller, in words."""
        self._runtime = runtime
        self._outgoing = outgoing
        self._connection: ClientConnection | None = None
        self._connected_to: Address | None = None
        self._abandoned: list[ClientConnection] = []
        self._connecting = Lock(runtime)

    @property
    def controller_versions(self) -> Mapping[int, tuple[int, int]]:
        """The API versions of the connected controller; empty without an open connection."""
        connection = self._connection
        if connection is None or not connection.is_open:
            return _NO_VERSIONS
        return connection.peer_versions

    async def send(self, message: Message, kind: type[Response]) -> Response:
        """Return the active controller's response.

        Raises ControllerUnreachableError when the time is over, and NoCommonVersionError.
        """
        deadline_ms = self._runtime.monotonic_ms() + self._timeout_ms
        pause_ms = FIRST_RETRY_MS
        while True:
            left_ms = deadline_ms - self._runtime.monotonic_ms()
            if left_ms <= 0:
                raise ControllerUnreachableError(
                    f"no active controller answered {message.NAME} within {self._timeout_ms} ms: "
                    f"{self.failure}"
                )
            response = await self._try_once(message, kind, timeout_ms=max(1, int(left_ms)))
            if response is not None:
                return response
            await sleep(self._runtime, pause_ms)
            pause_ms = min(2 * pause_ms, RETRY_MS_MAX)

    async def connect(self) -> None:
        """Connect if not yet connected and the leader is known; a failure is not an error."""
        try:
            await self._connect(CONNECT_TIMEOUT_MS)
        except ClientConnectionError as error:
            _log.debug("No connection to the controller for %s: %s", self._purpose, error)

    def close(self) -> None:
        """Close the connection; requests under way fail."""
        connection, self._connection = self._connection, None
        for abandoned in self._abandoned:
            abandoned.abort()
        if connection is not None:
            connection.abort()

    async def _try_once(
        self, message: Message, kind: type[Response], *, timeout_ms: int
    ) -> Response | None:
        """Return the response, None if the request should be sent again."""
        connection = None
        try:
            connection = await self._connect(timeout_ms)
            if connection is None:
                return None
            response = await connection.send(message, kind, timeout_ms=timeout_ms)
        except NoCommonVersionError:
            raise
        except ClientConnectionError as error:
            _log.debug("A request to the controller for %s failed: %s", self._purpose, error)
            self._forget(connection)
            self.failure = str(error)
            return None
        if getattr(response, "error_code", 0) == ErrorCode.NOT_CONTROLLER:
            self._forget(connection)
            self.failure = "the leader of the quorum is not the active controller"
            connection.abort()
            return None
        return response

    def _forget(self, connection: ClientConnection | None) -> None:
        """Open another connection next time; one to a later leader stays."""
        if self._connection is connection:
            self._connection = None

    async def _connect(self, timeout_ms: int) -> ClientConnection | None:
        """Return the connection to the leader, None while no leader is known."""
        async with self._connecting:
            leader = self._find_leader()
            connection = self._connection
            if connection is not None and connection.is_open:
                if leader is None or leader == self._connected_to:
                    return connection
                self._abandon(connection)
            if leader is None:
                self.failure = self._why_no_leader()
                return None
            self._connection = await awaiting(
                partial(
                    self._outgoing.open,
                    leader,
                    client_id=self._client_id,
                    timeout_ms=min(timeout_ms, CONNECT_TIMEOUT_MS),
                )
            )
            self._connected_to = leader
            return self._connection

    def _abandon(self, connection: ClientConnection) -> None:
        """Send nothing more to a node that leads no longer; what it has may still be answered."""
        self._connection = None
        connection.abandon()
        self._abandoned = [one for one in (*self._abandoned, connection) if one.is_open]

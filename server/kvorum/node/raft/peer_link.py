"""The connection to one peer for one purpose: opened on demand, again after a backoff."""

import asyncio
from enum import Enum

from kvorum.metadata.address import Address
from kvorum.node.clock import Clock
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ClientConnectionError,
    ConnectionLostError,
    NobodyListensError,
)
from kvorum.node.outbound.outgoing import Outgoing

RECONNECT_BACKOFF_MS_MIN = 50
RECONNECT_BACKOFF_MS_MAX = 500
LAST_BREATHS_MAX = 3
"""The number of connections that a dying process may still accept before it refuses one."""


class Purpose(Enum):
    """The purpose of a connection: a fetch that waits for records must not delay a vote."""

    FETCHING = "fetching"
    ELECTING = "electing"


class PeerLink:
    """At most one connection to one address, and the time of the next attempt."""

    def __init__(
        self, *, address: Address, client_id: str, timeout_ms: int, clock: Clock, outgoing: Outgoing
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._outgoing = outgoing
        self._lock = asyncio.Lock()
        self._connection: ClientConnection | None = None
        self._failure: ClientConnectionError | None = None
        self._retry_at = 0.0
        self._backoff_ms = RECONNECT_BACKOFF_MS_MIN
        self._is_closed = False

    async def connection(self) -> ClientConnection:
        """Return an open connection; raises ClientConnectionError, at once while backing off."""
        async with self._lock:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            if self._failure is not None and self._clock.monotonic_ms() < self._retry_at:
                raise self._failure
            return await self._connect()

    async def is_peer_gone(self) -> bool:
        """Return whether a reconnection is refused right after a connection was lost.

        In this case the peer's process has ended. A successful reconnection is kept.
        """
        async with self._lock:
            for _ in range(LAST_BREATHS_MAX):
                if self._is_closed or (self._connection is not None and self._connection.is_open):
                    return False
                try:
                    await self._connect()
                except NobodyListensError:
                    return True
                except ConnectionLostError:
                    # A listener that is being closed accepted the connection.
                    continue
                except ClientConnectionError:
                    return False
        return False

    def abort(self) -> None:
        """Close the connection finally, without waiting until it is closed."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.abort()

    async def close(self) -> None:
        """Close the connection finally."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> ClientConnection:
        self._retry_at = self._clock.monotonic_ms() + self._backoff_ms
        self._backoff_ms = min(2 * self._backoff_ms, RECONNECT_BACKOFF_MS_MAX)
        try:
            self._connection = await self._outgoing.open(
                self.address, client_id=self._client_id, timeout_ms=self._timeout_ms
            )
        except ClientConnectionError as error:
            self._failure = error
            raise
        self._failure = None
        self._backoff_ms = RECONNECT_BACKOFF_MS_MIN
        return self._connection

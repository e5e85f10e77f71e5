"""A connection to the leader of one epoch, over which nothing is sent twice.

The channel to the controller sends a request again, to the node that leads by then. That is wrong
for a request that was decided from the answer of one leader.
"""

from __future__ import annotations

from typing import TypeVar

from kvorum.metadata.address import Address
from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)


class LeaderConnection:
    """Opened with the first request to the leader of an epoch, and again after a failure."""

    def __init__(self, *, client_id: str, timeout_ms: int, outgoing: Outgoing) -> None:
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._outgoing = outgoing
        self._epoch = -1
        self._connection: ClientConnection | None = None

    async def open(self, address: Address, *, epoch: int) -> None:
        """Connect to the leader of `epoch` unless that is done. Raises ClientConnectionError."""
        connection = self._connection
        if connection is not None and connection.is_open and epoch == self._epoch:
            return
        self.close()
        self._epoch = epoch
        self._connection = await self._outgoing.open(
            address, client_id=self._client_id, timeout_ms=self._timeout_ms
        )

    async def request(self, message: Message, kind: type[Response]) -> Response:
        """Return the leader's response. Raises ClientConnectionError."""
        if self._connection is None:
            raise ClientConnectionError("there is no connection to the leader")
        return await self._connection.request(message, kind, timeout_ms=self._timeout_ms)

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

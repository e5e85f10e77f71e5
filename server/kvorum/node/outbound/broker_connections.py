"""Connections from this broker to others, for requests that several parts of it send."""

from collections.abc import Callable
from functools import partial

from kvorum.metadata.image import MetadataImage
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.outbound.outgoing import Outgoing, address_of_broker
from kvorum.node.tasks import awaiting


class BrokerConnections:
    """A connection to each broker, opened when it is needed, at the broker's latest address.

    `listener` is the one that brokers use.
    """

    def __init__(
        self,
        client_id: str,
        listener: str,
        image: Callable[[], MetadataImage],
        outgoing: Outgoing,
        *,
        request_timeout_ms: int,
    ) -> None:
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self._listener = listener
        self._image = image
        self._outgoing = outgoing
        self._opened: dict[int, ClientConnection] = {}

    async def to(self, node_id: int) -> ClientConnection:
        """Return the connection to a broker; raises ClientConnectionError without one."""
        connection: ClientConnection = await awaiting(partial(self._open, node_id))
        return connection

    async def _open(self, node_id: int) -> ClientConnection:
        known = self._opened.get(node_id)
        if known is not None and known.is_open:
            return known
        opened = await self._outgoing.open(
            address_of_broker(self._image(), node_id, self._listener),
            client_id=self.client_id,
            timeout_ms=self.request_timeout_ms,
        )
        self._opened[node_id] = opened
        return opened

    def close(self) -> None:
        """Close all connections."""
        for connection in self._opened.values():
            connection.abort()

"""Kafka's RemoteLeaderEndPoint: the way of a fetcher to the leader, over a connection."""

from collections.abc import Callable
from typing import TypeVar

from kvorum.broker.fetcher.fetch_requests import fetch_version, list_offsets_version
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MINIMUM_METADATA_VERSION, MetadataVersion
from kvorum.node.coroutines import Wait
from kvorum.node.outbound.client_connection import ClientConnection
from kvorum.node.outbound.outgoing import Outgoing, address_of_broker
from kvorum.node.tasks import awaiting
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound=Message)


class RemoteLeaderEndpoint:
    """One connection to another broker, by the listener that brokers use among themselves.

    The address is that of the latest image: a broker that starts again may have another one.
    """

    def __init__(
        self,
        leader_id: int,
        *,
        listener: str,
        client_id: str,
        timeout_ms: int,
        image: Callable[[], MetadataImage],
        outgoing: Outgoing,
    ) -> None:
        self._leader_id = leader_id
        self._listener = listener
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._image = image
        self._outgoing = outgoing
        self._connection: ClientConnection | None = None

    def connect(self) -> Wait[None]:
        """Return the wait for a connection; raises ClientConnectionError."""
        return awaiting(self._connect)

    @property
    def fetch_version(self) -> int:
        """The version of Fetch that the metadata version stands for."""
        return fetch_version(self._metadata_version)

    async def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        """Return the response to a fetch; raises ClientConnectionError."""
        return await self._ask(request, FetchResponse, version)

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Return offsets of the leader; raises ClientConnectionError."""
        version = list_offsets_version(self._metadata_version)
        return await self._ask(request, ListOffsetsResponse, version)

    def abort(self) -> None:
        """Close the connection; a request that is under way fails."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def close(self) -> Wait[None]:
        """Return the wait for the connection to be closed."""
        return awaiting(self._close)

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _connect(self) -> None:
        await self._connected()

    async def _connected(self) -> ClientConnection:
        if self._connection is None or not self._connection.is_open:
            address = address_of_broker(self._image(), self._leader_id, self._listener)
            self._connection = await self._outgoing.open(
                address, client_id=self._client_id, timeout_ms=self._timeout_ms
            )
        return self._connection

    async def _ask(self, request: Message, kind: type[Response], version: int) -> Response:
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = await awaiting(self._connected)
        return await connection.send(request, kind, timeout_ms=self._timeout_ms, version=version)

    @property
    def _metadata_version(self) -> MetadataVersion:
        return self._image().features.metadata_version or MINIMUM_METADATA_VERSION

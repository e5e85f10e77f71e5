"""Servers that answer frames or requests as a test wants it."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Self

from tests.support.waiting import PATIENCE_S

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.nodes import AdminSettings
from kvorum.metadata.address import Address
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS, message_class, request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterResponse
from kvorum.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from kvorum.wire.primitives import Message

AnswerFrame = Callable[[bytes], Awaitable[bytes | None]]
"""Returns what to send, size and all: b"" leaves the client waiting, None hangs up."""
HOST = "127.0.0.1"
QUORUM_KEYS: Final = (
    ApiKey.FETCH,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.FETCH_SNAPSHOT,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
    ApiKey.UPDATE_RAFT_VOTER,
)
Answer = Callable[[Message], Message | None]
"""None hangs up; SILENCE leaves the client waiting."""
SILENCE = MetadataResponse(cluster_id="to be left unsaid")


class FrameServer:
    """Answers everybody who connects; as a context it listens at a free port, and is then gone."""

    def __init__(self, answer_frame: AnswerFrame) -> None:
        self.port = 0
        self.answer_frame = answer_frame
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, HOST, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self.break_connections()

    async def break_connections(self) -> None:
        """End every connection there is; new ones are taken as before."""
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def wait_until_left(self) -> None:
        """Wait until the connections that are open now are closed; TimeoutError if they are not."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
                while True:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    answer = await self.answer_frame(await reader.readexactly(size))
                    if answer is None:
                        break
                    writer.write(answer)
                    await writer.drain()
        finally:
            self._connections.discard(task)
            writer.close()


def all_versions(keys: Iterable[int]) -> list[ApiVersionsResponse.ApiVersion]:
    """Return what a server says that serves these APIs in all versions."""
    return [
        ApiVersionsResponse.ApiVersion(spec.key, spec.min_version, spec.max_version)
        for spec in map(API_SPECS.__getitem__, keys)
    ]


class FakeNode(FrameServer):
    """One server; `asked` holds the requests it got, in order. Use as a context.

    It says of itself that it is the only broker, and the active controller.
    """

    def __init__(self, **answers: Answer) -> None:
        super().__init__(self.response_to)
        self.asked: list[Message] = []
        self._answers: dict[str, Answer] = {
            "Metadata": lambda _: MetadataResponse(brokers=[self._broker()]),
            "DescribeCluster": lambda _: self.described_cluster(),
            **answers,
        }

    def settings(
        self,
        *,
        asks_controllers: bool = False,
        api_timeout_ms: int = 5000,
        request_timeout_ms: int = 5000,
        retries_max: int = 1000,
    ) -> AdminSettings:
        """Return settings of a client that knows this node only."""
        return AdminSettings(
            addresses=(Address(HOST, self.port),),
            asks_controllers=asks_controllers,
            api_timeout_ms=api_timeout_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=1,
            retries_max=retries_max,
        )

    def described_cluster(self, controller_id: int = 1) -> DescribeClusterResponse:
        """Return a cluster of this controller alone."""
        itself = DescribeClusterResponse.DescribeClusterBroker(1, HOST, self.port)
        return DescribeClusterResponse(
            endpoint_type=2, cluster_id="cluster", controller_id=controller_id, brokers=[itself]
        )

    def answer(self, name: str, answer: Answer) -> None:
        """Answer an API's requests otherwise from now on."""
        self._answers[name] = answer

    def times_asked(self, name: str) -> int:
        return sum(f"{name}Request" == request.NAME for request in self.asked)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def _broker(self) -> MetadataResponseBroker:
        return MetadataResponseBroker(1, HOST, self.port)

    async def response_to(self, frame: bytes) -> bytes | None:
        header, body = decode_request_frame(frame)
        key, version = header.request_api_key, header.request_api_version
        request = request_class(key).decode(body, version)
        answer: Message | None = self._versions()
        if key != ApiKey.API_VERSIONS:
            self.asked.append(request)
            answer = self._answers[request.NAME.removesuffix("Request")](request)
        if answer is None:
            return None
        if answer is SILENCE:
            return b""
        return with_size(
            encode_response_frame(answer, version=version, correlation_id=header.correlation_id)
        )

    def _versions(self) -> ApiVersionsResponse:
        requests = [message_class(f"{name}Request") for name in ("ApiVersions", *self._answers)]
        return ApiVersionsResponse(api_keys=all_versions(one.API_KEY or 0 for one in requests))


def client_of(settings: AdminSettings, warnings: list[str] | None = None) -> AdminClient:
    """Return a client that keeps its warnings in a list."""
    told: list[str] = [] if warnings is None else warnings
    return AdminClient(settings, warn=told.append)

"""A server that answers each request as a test wants it."""

import asyncio
from collections.abc import Callable

from tests.support.frame_server import HOST, FrameServer, all_versions
from tests.support.waiting import PATIENCE_S

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.settings import AdminSettings
from kvorum.metadata.address import Address
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import message_class, request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterResponse
from kvorum.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from kvorum.wire.primitives import Message

Answer = Callable[[Message], Message | None]
"""None hangs up; SILENCE leaves the client waiting."""
SILENCE = MetadataResponse(cluster_id="to be left unsaid")


class FakeNode(FrameServer):
    """One server; `asked` holds the requests it got, in order. Use as a context.

    It says of itself that it is the only broker, and the active controller.
    """

    def __init__(self, **answers: Answer) -> None:
        super().__init__(self._answer)
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
        """Return how many requests of one API there were."""
        return sum(f"{name}Request" == request.NAME for request in self.asked)

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def wait_until_left(self) -> None:
        """Wait until the connections that are open now are closed; TimeoutError if they are not."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self._connections)

    def _broker(self) -> MetadataResponseBroker:
        return MetadataResponseBroker(1, HOST, self.port)

    async def _answer(self, frame: bytes) -> bytes | None:
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

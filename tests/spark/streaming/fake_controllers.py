"""Controllers on loopback that answer as a script says, and remember what they were asked."""

import socketserver
import struct
from collections.abc import Callable, Iterable
from typing import Self

from tests.support.waiting import Threads

from kvorum.metadata.address import Address
from kvorum.wire.apis import request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.primitives import Message

VERSIONS = {1: (0, 18), 18: (0, 4), 55: (0, 2), 59: (0, 1), 60: (0, 2)}
Answers = Callable[[Message], Message | bytes | None]
"""From a request to its answer: a message, bytes as they are, or None to close the connection."""


class FakeController:
    """One controller; `answers` may be replaced while it runs. Use as a context."""

    def __init__(self, answers: Answers, versions: dict[int, tuple[int, int]] = VERSIONS) -> None:
        self.answers = answers
        self.requests: list[Message] = []
        self._versions = versions
        controller = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while (size := self.rfile.read(4)) and controller.is_up:
                    frame = self.rfile.read(struct.unpack(">i", size)[0])
                    reply = controller.reply(frame)
                    if reply is None:
                        return
                    self.wfile.write(reply)

        self.is_up = True
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._threads = Threads()

    def __enter__(self) -> Self:
        self._threads.start(self._server.serve_forever, 0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self._server.server_address[1])

    def kill(self) -> None:
        """Accept no connection any more, and answer none that there is."""
        if self.is_up:
            self.is_up = False
            self._server.shutdown()
            self._server.server_close()
            self._threads.join()

    def reply(self, frame: bytes) -> bytes | None:
        header, body = decode_request_frame(frame)
        request, _ = request_class(header.request_api_key).decode_from(
            bytes(body), 0, header.request_api_version
        )
        if isinstance(request, ApiVersionsRequest):
            listed = [ApiVersionsResponse.ApiVersion(k, *r) for k, r in self._versions.items()]
            answer: Message | bytes | None = ApiVersionsResponse(api_keys=listed)
        else:
            self.requests.append(request)
            answer = self.answers(request)
        if answer is None or isinstance(answer, bytes):
            return answer
        return with_size(
            encode_response_frame(
                answer, version=header.request_api_version, correlation_id=header.correlation_id
            )
        )

    @property
    def fetches(self) -> list[FetchRequest.FetchPartition]:
        """The fetched records, in order."""
        return [
            request.topics[0].partitions[0]
            for request in self.requests
            if isinstance(request, FetchRequest)
        ]


def fetched(
    data: FetchResponse.PartitionData, endpoints: Iterable[tuple[int, Address]] = ()
) -> FetchResponse:
    """Return an answer to Fetch with these endpoints of nodes."""
    nodes = [FetchResponse.NodeEndpoint(node_id, *address) for node_id, address in endpoints]
    topic = FetchResponse.FetchableTopicResponse(partitions=[data])
    return FetchResponse(responses=[topic], node_endpoints=nodes)


def led_by(leader_id: int, epoch: int) -> FetchResponse.LeaderIdAndEpoch:
    return FetchResponse.LeaderIdAndEpoch(leader_id, epoch)

"""A controller in name only: it listens, and answers as a test wants it to."""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from tests.support.fake_node import all_versions
from tests.support.waiting import Threads, wait_for_change

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame, with_size
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.primitives import Message

QUORUM_KEYS = (
    ApiKey.FETCH,
    ApiKey.API_VERSIONS,
    ApiKey.VOTE,
    ApiKey.BEGIN_QUORUM_EPOCH,
    ApiKey.END_QUORUM_EPOCH,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.FETCH_SNAPSHOT,
)
_SIZE = struct.Struct(">i")

# Takes a request and returns its response; None for one that is left without.
Answer = Callable[[Message], Message | None]
# Takes a whole response, size and all, and returns what is sent in its place; None ends it all.
Spoil = Callable[[bytes], bytes | None]


class FakePeer:
    """Answers everybody who connects; as a context it listens, and is gone at the end."""

    def __init__(
        self,
        port: int,
        answer: Answer,
        *,
        spoil: Spoil | None = None,
        versions: ApiVersionsResponse | None = None,
    ) -> None:
        self._port = port
        self._answer = answer
        self._spoil = spoil
        self._versions = versions or ApiVersionsResponse(api_keys=all_versions(QUORUM_KEYS))
        self._listening: socket.socket | None = None
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._acceptor, self._servers = Threads(), Threads()
        self._heard: list[Message] = []
        self._connection_count = 0

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", self._port))
        self._acceptor.start(self._accept, self._listening)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._acceptor.join()
        with self._changed:
            connections = list(self._open)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._servers.join()

    def heard(self) -> list[Message]:
        with self._changed:
            return list(self._heard)

    def wait_until(self, condition: Callable[[list[Message], int], bool]) -> None:
        """Wait for something that is true of all requests so far, and the count of connections."""
        wait_for_change(
            self._changed,
            lambda: condition(self._heard, self._connection_count),
            "enough is heard",
            otherwise=lambda: f"{len(self._heard)} requests, {self._connection_count} connections",
        )

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with self._changed:
                    self._open.add(connection)
                    self._connection_count += 1
                    self._changed.notify_all()
                self._servers.start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, EOFError), connection:
            while True:
                (size,) = _SIZE.unpack(_read(connection, _SIZE.size))
                data = self._respond(_read(connection, size))
                if data is None:
                    break
                connection.sendall(data)
        with self._changed:
            self._open.discard(connection)

    def _respond(self, frame: bytes) -> bytes | None:
        """Return what to send for a request; nothing where it is left without a response."""
        header, body = decode_request_frame(frame)
        version = header.request_api_version
        request = request_class(header.request_api_key).decode(bytes(body), version)
        is_first = isinstance(request, ApiVersionsRequest)
        response = self._versions if is_first else self._answer(request)
        if not is_first:
            with self._changed:
                self._heard.append(request)
                self._changed.notify_all()
        if response is None:
            return b""
        data = with_size(
            encode_response_frame(response, version=version, correlation_id=header.correlation_id)
        )
        return data if is_first or self._spoil is None else self._spoil(data)


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = connection.recv(size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data

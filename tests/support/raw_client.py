"""A client that puts bytes on a socket, requests or none, and looks at what comes back."""

import socket
import struct
from typing import Self, TypeVar

from tests.support.waiting import PATIENCE_S

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.headers import decode_response_frame, encode_request_frame, with_size
from kvorum.wire.primitives import Message

TIMEOUT_SECONDS = PATIENCE_S
"""The time that an answer may take: nothing is claimed of how soon it comes."""
Response = TypeVar("Response", bound=Message)
CUT_OFF = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS hello": bytes.fromhex("1603010200010001fc0303") + bytes(506),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "zeros": bytes(400),
    "negative size": struct.pack(">i", -1),
    "lowest size": struct.pack(">i", -(2**31)),
    "highest size": struct.pack(">i", 2**31 - 1),
    "no header": struct.pack(">i", 0),
    "half a header": struct.pack(">ih", 2, ApiKey.API_VERSIONS),
    "unknown key": struct.pack(">ihhih", 10, 4711, 0, 1, -1),
    "negative key": struct.pack(">ihhih", 10, -1, 0, 1, -1),
    "unknown version": struct.pack(">ihhih", 10, ApiKey.CREATE_TOPICS, 99, 1, -1),
    "negative version": struct.pack(">ihhih", 10, ApiKey.CREATE_TOPICS, -1, 1, -1),
    "body cut short": struct.pack(">ihhihih", 16, ApiKey.CREATE_TOPICS, 2, 1, -1, 3, 9),
    "array of 2^31-1": struct.pack(">ihhihi", 14, ApiKey.CREATE_TOPICS, 2, 1, -1, 2**31 - 1),
    "array below null": struct.pack(">ihhihi", 14, ApiKey.CREATE_TOPICS, 2, 1, -1, -7),
    "client id beyond the end": struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, 32767),
    "endless varint": struct.pack(">ihhihB", 21, ApiKey.CREATE_TOPICS, 7, 1, -1, 0) + b"\xff" * 10,
}


def sized_frame(request: Message, version: int) -> bytes:
    frame = encode_request_frame(request, version=version, correlation_id=1, client_id="raw")
    return with_size(frame)


class RawClient:
    """One connection; `address` is ``host:port``, `source_host` the own address if it matters."""

    def __init__(
        self, address: str, *, source_host: str = "", client_id: str | None = "raw"
    ) -> None:
        host, _, port = address.partition(":")
        # A port that is bound before it connects must have no connection that lingers; tests leave
        # thousands of those.
        source = (source_host, 0) if source_host else None
        self.socket = socket.create_connection(
            (host, int(port)), timeout=TIMEOUT_SECONDS, source_address=source
        )
        self.client_id = client_id
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def read_frame(self) -> bytes | None:
        """Return the next frame, None where the server has closed the connection."""
        size = self._read(4)
        return None if size is None else self._read(struct.unpack(">i", size)[0])

    def is_closed(self) -> bool:
        """Wait until the server closes the connection without a response."""
        return self.read_frame() is None

    def send(self, request: Message, version: int) -> int:
        """Send a request and return its correlation id."""
        self._correlation_id += 1
        self.send_frame(
            encode_request_frame(
                request,
                version=version,
                correlation_id=self._correlation_id,
                client_id=self.client_id,
            )
        )
        return self._correlation_id

    def ask(self, request: Message, kind: type[Response], version: int) -> Response:
        """Send a request and return the response, whose correlation id must be the same."""
        self.send(request, version)
        return self.response(kind, version)

    def response(self, kind: type[Response], version: int) -> Response:
        """Return the response to the last request, whose correlation id must be the same."""
        frame = self.read_frame()
        assert frame is not None, "the server closed the connection"
        header, response = decode_response_frame(frame, response_class=kind, version=version)
        assert header.correlation_id == self._correlation_id
        return response

    def _read(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                chunk = self.socket.recv(size - len(received))
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            received += chunk
        return bytes(received)

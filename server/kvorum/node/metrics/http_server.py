"""A small HTTP server in the event loop of the node, with limits that protect it from clients.

A connection serves one request: GET or HEAD, without a body, complete within a few seconds. The
number of connections is small, each takes a few kilobytes, and each is closed when its time is
over, even if the client does not read.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias, cast

from kvorum.node.sockets import ConnectionEnd, end_listening

HEAD_BYTES_MAX = 8 * 1024
"""Request line and headers together; Prometheus sends some 200 bytes."""
END_OF_HEAD = b"\r\n\r\n"
CONNECTIONS_MAX = 32
"""There are only a few scrapers and probes."""
REQUEST_SECONDS_MAX = 5.0
"""The time limit for the whole request to arrive."""
ANSWER_SECONDS_MAX = 30.0
"""The time limit to compute the response and to send it."""
_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) (\S+) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
_log = logging.getLogger(__name__)


class BadRequestError(Exception):
    """The bytes are not a valid request; `status` is the response."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; `path` is without a query, `accept` the content types that the client reads."""

    method: str
    path: str
    accept: str


def read_head(head: bytes) -> HttpRequest:
    """Read a request up to the empty line; raises BadRequestError."""
    first, *lines = head.split(b"\r\n")
    matched = _REQUEST_LINE.fullmatch(first)
    if matched is None:
        raise BadRequestError(HTTPStatus.BAD_REQUEST)
    accept: list[str] = []
    for line in lines:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise BadRequestError(HTTPStatus.BAD_REQUEST)
        if header[1].lower() == b"accept":
            accept.append(header[2].decode("latin-1"))
    path = matched[2].decode("latin-1").partition("?")[0]
    return HttpRequest(matched[1].decode("ascii"), path, ", ".join(accept))


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"

    def encode(self, *, with_body: bool) -> bytes:
        """Return the bytes to send; the connection is closed after them."""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.content_type}\r\n"
            f"Content-Length: {len(self.body)}\r\n"
            "Cache-Control: no-store\r\n"
            "Connection: close\r\n\r\n"
        )
        return head.encode("ascii") + (self.body if with_body else b"")


def plain(status: HTTPStatus) -> HttpAnswer:
    """Return a response whose body is the name of its status."""
    return HttpAnswer(status, f"{status.phrase}\n".encode())


Answerer: TypeAlias = Callable[[HttpRequest], Awaitable[HttpAnswer]]


class HttpServer:
    """A server that answers requests by their path."""

    def __init__(self, answerers: Mapping[str, Answerer]) -> None:
        self._answerers = answerers
        # In the order in which they were accepted.
        self._connections: dict[_Connection, None] = {}
        self._server: asyncio.Server | None = None
        self._bound: socket.socket | None = None

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    async def start(self, bound: socket.socket) -> None:
        """Listen on a bound socket, which this server closes."""
        self._bound = bound
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self._connections, self.answer), sock=bound, start_serving=False
        )
        # It is known by now: a start that is cancelled here can be undone by `stop`.
        await self._server.start_serving()

    async def stop(self) -> None:
        """Stop listening and close every connection. May be repeated."""
        server, self._server = self._server, None
        if server is not None and self._bound is not None:
            end_listening(self._bound)
            server.close()
        for connection in tuple(self._connections):
            connection.abort()

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """Return the response to a request; an error becomes a response too."""
        if request.method not in {"GET", "HEAD"}:
            return plain(HTTPStatus.METHOD_NOT_ALLOWED)
        answerer = self._answerers.get(request.path)
        if answerer is None:
            return plain(HTTPStatus.NOT_FOUND)
        try:
            return await answerer(request)
        except Exception:  # noqa: BLE001 - an error in the metrics must not end the node
            _log.exception("Answering %s failed", request.path)
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR)


class _Connection(asyncio.Protocol):
    """One connection, from its first byte to the last byte of its only response."""

    def __init__(
        self,
        others: dict[_Connection, None],
        answer: Callable[[HttpRequest], Awaitable[HttpAnswer]],
    ) -> None:
        self._others = others
        self._answer_to = answer
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._deadline: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._is_answered = False
        self._end = ConnectionEnd()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection; if there are too many, close the oldest one."""
        self._transport = cast("asyncio.Transport", transport)
        if len(self._others) >= CONNECTIONS_MAX:
            # A client that holds connections open cannot prevent the response to a probe.
            next(iter(self._others)).abort()
        self._others[self] = None
        self._set_deadline(REQUEST_SECONDS_MAX)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Remove the connection and cancel its response."""
        if self._transport is not None:
            self._end.shut_down(self._transport)
            self._transport = None
        self._buffer.clear()
        self._others.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._answering is not None:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect bytes until the head is complete; later bytes are ignored."""
        if self._is_answered or self._answering is not None:
            return
        self._buffer += data
        end = self._buffer.find(END_OF_HEAD, 0, HEAD_BYTES_MAX)
        if end >= 0:
            self._take(bytes(self._buffer[:end]))
        elif len(self._buffer) >= HEAD_BYTES_MAX:
            self._finish(plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), with_body=True)

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _take(self, head: bytes) -> None:
        self._buffer.clear()
        try:
            request = read_head(head)
        except BadRequestError as error:
            self._finish(plain(error.status), with_body=True)
            return
        self._set_deadline(ANSWER_SECONDS_MAX)
        self._answering = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: HttpRequest) -> None:
        self._finish(await self._answer_to(request), with_body=request.method != "HEAD")

    def _finish(self, answer: HttpAnswer, *, with_body: bool) -> None:
        """Send a response; the connection is closed once it is sent, or the time is over."""
        self._is_answered = True
        self._buffer.clear()
        if self._transport is None:
            return
        self._transport.write(answer.encode(with_body=with_body))
        if self._transport.can_write_eof():
            # Bytes that the client still sends are read and dropped: a close before that would
            # reset the connection, and lose a response that has not arrived.
            self._transport.write_eof()
        else:
            self._transport.close()

    def eof_received(self) -> bool:
        """Close if the response is sent; a client may end its side before that."""
        return not self._is_answered

    def _set_deadline(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.abort)

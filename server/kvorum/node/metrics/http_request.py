"""The part of HTTP/1.1 that scrapers and probes use: a request line, and headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus

HEAD_BYTES_MAX = 8 * 1024
"""Request line and headers together; Prometheus sends some 200 bytes."""
END_OF_HEAD = b"\r\n\r\n"
_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) (\S+) HTTP/1\.[01]")
_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")


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

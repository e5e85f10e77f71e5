"""The HTTP listener: its answers, also while a node opens its log; no client can harm it."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

import pytest
from tests.support.waiting import PATIENCE_S, wait_for_async

from kvorum.node.clock import SystemClock
from kvorum.node.metrics import http_server
from kvorum.node.metrics.http_server import (
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    BadRequestError,
    HttpAnswer,
    HttpRequest,
    HttpServer,
    read_head,
)
from kvorum.node.monitoring.metrics_server import MetricsServer

PAGE = b"a page\n" * 1000
GET = b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n"
ENDLESS_BYTES = 50_000_000


async def _page(request: HttpRequest) -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, PAGE + request.accept.encode())


async def _broken(request: HttpRequest) -> HttpAnswer:
    raise RuntimeError(request.path)


async def _endless(request: HttpRequest) -> HttpAnswer:
    del request
    return HttpAnswer(HTTPStatus.OK, bytes(ENDLESS_BYTES))


@dataclass(frozen=True, slots=True)
class Serving:
    """A server, and where it listens."""

    server: HttpServer
    address: tuple[str, int]

    async def until_no_client_is_connected(self) -> None:
        """Wait until every connection is gone; a first one must have come."""
        server = self.server
        await wait_for_async(lambda: server.connection_count > 0, "somebody is connected")
        await wait_for_async(lambda: server.connection_count == 0, "nobody is connected")


@pytest.fixture
async def server() -> AsyncIterator[Serving]:
    serving = HttpServer({"/page": _page, "/broken": _broken, "/endless": _endless})
    bound = socket.create_server(("127.0.0.1", 0))
    await serving.start(bound)
    yield Serving(serving, bound.getsockname())
    await serving.stop()
    bound.close()


@pytest.fixture
def address(server: Serving) -> tuple[str, int]:
    return server.address


@asynccontextmanager
async def connected(
    address: tuple[str, int], *, read_ahead_bytes: int = 1 << 16
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Hold a connection for as long as a test has patience."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection(*address, limit=read_ahead_bytes)
        try:
            yield reader, writer
        finally:
            writer.close()


async def ask(address: tuple[str, int], request: bytes) -> bytes:
    """Send bytes and return everything that comes until the other side closes."""
    async with connected(address) as (reader, writer):
        writer.write(request)
        return await reader.read()


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_a_page_comes_with_its_length(address: tuple[str, int]) -> None:
    head, _, body = (await ask(address, GET)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert f"Content-Length: {len(PAGE)}".encode() in head
    assert b"Connection: close" in head
    assert body == PAGE


async def test_head_comes_without_the_page(address: tuple[str, int]) -> None:
    head, _, body = (await ask(address, b"HEAD /page HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(PAGE)}".encode() in head
    assert body == b""


async def test_a_query_is_passed_over_and_accept_is_passed_on(address: tuple[str, int]) -> None:
    request = b"GET /page?name=x HTTP/1.1\r\nACCEPT: text/plain\r\naccept:*/*\r\n\r\n"
    assert (await ask(address, request)).endswith(b"text/plain, */*")


async def test_a_request_may_come_byte_by_byte(address: tuple[str, int]) -> None:
    async with connected(address) as (reader, writer):
        for byte in GET:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)
        assert status_of(await reader.read()) == 200


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET / HTTP/1.0\r\n\r\n", 404),
        (b"GET /broken HTTP/1.1\r\n\r\n", 500),
        (b"POST /page HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"\r\n\r\n", 400),
        (b"GET /page\r\n\r\n", 400),
        (b"GET  /page HTTP/1.1\r\n\r\n", 400),
        (b"GET /page HTTP/2\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nno header\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"GET /page HTTP/1.1\r\nA: \x00\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"\x00\x00\x00\x17\x00\x12\x00\x03" + bytes(19) + b"\r\n\r\n", 400),
        (b"GET /" + b"x" * HEAD_BYTES_MAX, 431),
        (b"GET /page HTTP/1.1\r\n" + b"A: b\r\n" * HEAD_BYTES_MAX, 431),
    ],
)
async def test_anything_that_is_not_a_request_is_refused(
    address: tuple[str, int], request_bytes: bytes, status: int
) -> None:
    assert status_of(await ask(address, request_bytes)) == status
    assert status_of(await ask(address, GET)) == 200


async def test_a_client_that_never_finishes_is_cut_off(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS_MAX", 0.05)
    for sent in (GET[:-2], b""):
        with suppress(ConnectionResetError):
            assert await ask(address, sent) == b""


async def test_a_client_that_does_not_read_is_cut_off(
    server: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "ANSWER_SECONDS_MAX", 0.05)
    async with connected(server.address, read_ahead_bytes=1) as (reader, writer):
        writer.write(b"GET /endless HTTP/1.1\r\n\r\n")
        await server.until_no_client_is_connected()
        received = 0
        with suppress(ConnectionResetError):
            while part := await reader.read(1_000_000):
                received += len(part)
        assert received < ENDLESS_BYTES


async def test_open_connections_keep_no_client_out(address: tuple[str, int]) -> None:
    held = [await asyncio.open_connection(*address) for _ in range(3 * CONNECTIONS_MAX)]
    assert status_of(await ask(address, GET)) == 200

    def open_count() -> int:
        return sum(not reader.at_eof() and reader.exception() is None for reader, _ in held)

    await wait_for_async(
        lambda: open_count() <= CONNECTIONS_MAX, "the others are closed", otherwise=open_count
    )
    for _, writer in held:
        writer.close()


async def test_a_page_without_a_reader_is_dropped() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def slow(request: HttpRequest) -> HttpAnswer:
        del request
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    server = HttpServer({"/page": slow})
    bound = socket.create_server(("127.0.0.1", 0))
    await server.start(bound)
    async with connected(bound.getsockname()) as (_, writer):
        writer.write(GET)
        await began.wait()
        await server.stop()
        await ended.wait()
    bound.close()


async def test_a_head_is_read_as_it_is_written() -> None:
    assert read_head(b"GET /a?b HTTP/1.1\r\nX: y") == HttpRequest("GET", "/a", "")
    with pytest.raises(BadRequestError):
        read_head(b"")


async def _get(port: int, path: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def test_a_node_whose_log_is_not_open_yet_is_alive_and_not_ready() -> None:
    monitoring = MetricsServer(7, lambda: None, SystemClock())
    bound = socket.create_server(("127.0.0.1", 0))
    await monitoring.start(bound)
    try:
        port = bound.getsockname()[1]
        status, body = await _get(port, "/healthz")
        assert (status, json.loads(body)["node_id"]) == (200, 7)
        status, body = await _get(port, "/readyz")
        assert status == 503
        assert json.loads(body)["reasons"] == ["the metadata log is not open yet"]
        status, body = await _get(port, "/metrics")
        assert status == 200
        assert b"is_alive 1" in body
        assert b"is_ready 0" in body
    finally:
        await monitoring.stop()

"""The answers of a node while it opens its log, which may take long."""

import asyncio
import json
import socket

from kvorum.node.monitoring.metrics_server import MetricsServer


async def _get(port: int, path: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def test_a_node_whose_log_is_not_open_yet_is_alive_and_not_ready() -> None:
    monitoring = MetricsServer(7, lambda: None)
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

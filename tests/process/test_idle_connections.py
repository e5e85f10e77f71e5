"""10,000 connections that say nothing: they cost a little memory, and no other client notices."""

import time
from contextlib import ExitStack
from pathlib import Path
from socket import create_connection, socket

import pytest
from tests.support.fixtures import Report
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient
from tests.support.resources import Memory
from tests.support.topics import create, wait_until_served
from tests.support.waiting import PATIENCE_S

from kvorum.wire.error_codes import ErrorCode

BYTES_EACH_MAX = 8 * 1024


@pytest.fixture
def node(formatted: Node, tmp_path: Path) -> Node:
    """A node that closes 10,000 connections at once and stays in its cluster."""
    return formatted.copy_to(tmp_path / "node", settings={})


def _connected(node: Node) -> socket:
    return create_connection(("127.0.0.1", node.broker_port), timeout=PATIENCE_S)


def _timed_answer(address: str) -> float:
    started = time.monotonic()
    wait_until_served(address)
    return time.monotonic() - started


def test_idle_connections(
    report: Report, node: Node, running: NodeProcess, connection_count: int
) -> None:
    memory = Memory(running.pid)
    slowest = _timed_answer(node.broker)
    before = memory.resident_bytes()
    with ExitStack() as idle, RawClient(node.broker):
        for number in range(connection_count):
            idle.enter_context(
                create_connection(("127.0.0.1", node.broker_port), timeout=PATIENCE_S)
            )
            if number % 1000 == 999:
                slowest = max(slowest, _timed_answer(node.broker))
        assert create(node.broker, "among-the-idle") == [ErrorCode.NONE]
        grown = memory.resident_bytes() - before
    report(
        f"{connection_count} idle connections: the node grew from {before / 2**20:.1f} MiB by "
        f"{grown / 2**20:.1f} MiB, {grown / connection_count:.0f} bytes each; the slowest answer "
        f"to another client took {slowest * 1000:.0f} ms"
    )
    assert grown < BYTES_EACH_MAX * connection_count
    assert create(node.broker, "after") == [ErrorCode.NONE]
    assert running.terminate().exit_code == 0


def test_connections_that_come_and_go(
    node: Node, running: NodeProcess, connection_count: int
) -> None:
    """Nothing of them is kept."""
    memory = Memory(running.pid)
    count = min(connection_count, 2000)
    for _ in range(count):
        _connected(node).close()
    wait_until_served(node.broker)
    before = memory.resident_bytes()
    for _ in range(count):
        _connected(node).close()
    wait_until_served(node.broker)
    assert memory.resident_bytes() - before < 2 * 1024 * 1024

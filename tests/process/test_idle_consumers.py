"""10,000 consumers that wait for a record: no other client notices, and it wakes all of them."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from tests.process.bystander import WORK_MAX_S, Bystander
from tests.support.fixtures import Report
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient, sized_frame
from tests.support.record_requests import FETCH_VERSION, batch, fetch_request, produce, values
from tests.support.resources import Memory, wait_until_quiet
from tests.support.topics import create, wait_until_written
from tests.support.waiting import PATIENCE_S

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame
from kvorum.wire.messages.fetch import FetchResponse

WAIT_MS: Final = 300_000
IDLE_S: Final = 3.0
TOPIC: Final = "quiet"
RECORD: Final = b"the record"
BYTES_EACH_MAX: Final = 20 * 1024


@pytest.fixture
def node(formatted: Node, tmp_path: Path) -> Node:
    """A node that answers 10,000 consumers at once and stays in its cluster."""
    return formatted.copy_to(tmp_path / "node", settings={})


def _answers(consumers: list[socket.socket]) -> Iterator[FetchResponse]:
    """Yield what each is answered; a response is small and comes at once."""
    for consumer in consumers:
        consumer.settimeout(PATIENCE_S)
        frame = consumer.recv(4096)
        _, response = decode_response_frame(
            frame[4:], response_class=FetchResponse, version=FETCH_VERSION
        )
        yield response


@pytest.mark.slow
def test_idle_consumers(
    report: Report, node: Node, running: NodeProcess, connection_count: int
) -> None:
    assert create(node.broker, TOPIC) == [ErrorCode.NONE]
    wait_until_written(node.broker, TOPIC, batch(b"first"))
    memory = Memory(running.pid)
    before = memory.resident_bytes()
    request = fetch_request(TOPIC, 1, min_bytes=1, max_wait_ms=WAIT_MS)
    frame = sized_frame(request, FETCH_VERSION)
    with ExitStack() as opened:
        with Bystander(node.broker, running.pid) as while_they_come:
            consumers: list[socket.socket] = []
            for _ in range(connection_count):
                consumer = opened.enter_context(
                    socket.create_connection(("127.0.0.1", node.broker_port), timeout=PATIENCE_S)
                )
                consumer.sendall(frame)
                consumers.append(consumer)
        busy = wait_until_quiet(running.pid, IDLE_S)
        grown = memory.resident_bytes() - before
        started = time.monotonic()
        with (
            Bystander(node.broker, running.pid) as while_they_wake,
            RawClient(node.broker) as producer,
        ):
            assert produce(producer, TOPIC, batch(RECORD)).error_code == ErrorCode.NONE
            for answer in _answers(consumers):
                assert values(answer.responses[0].partitions[0]) == [RECORD]
        awake = time.monotonic() - started
        peak = memory.peak_bytes() - before
    report(
        f"{connection_count} consumers that wait: the node grew by {grown / 2**20:.1f} MiB, "
        f"{grown / connection_count:.0f} bytes each ({peak / connection_count:.0f} while all are "
        f"answered), and used {busy * 100:.1f} % of a processor; a record came to all of them in "
        f"{awake:.1f} s; the slowest answer to another client took "
        f"{while_they_come.slowest_s * 1000:.0f} ms while they came, "
        f"{while_they_wake.slowest_s * 1000:.0f} ms while they were woken"
    )
    assert grown < BYTES_EACH_MAX * connection_count
    assert peak < 2 * BYTES_EACH_MAX * connection_count
    assert max(while_they_come.most_work_s, while_they_wake.most_work_s) < WORK_MAX_S
    assert running.terminate().exit_code == 0

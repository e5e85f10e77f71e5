"""SIGTERM and SIGINT: a node that is asked to stop leaves everything in order."""

import re
import signal

import pytest
from tests.support.node import Node
from tests.support.topics import create, read_topics

from kvorum.wire.error_codes import ErrorCode

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
EPOCH = re.compile(r"The broker is registered broker=1 epoch=(\d+)")


def _epoch(line: str) -> int:
    found = EPOCH.search(line)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_in_order(node: Node, number: signal.Signals) -> None:
    epochs: list[int] = []
    for start in range(3):
        with node.process as process:
            assert not (node.data / CLEAN_SHUTDOWN).exists(), "a crash would go unnoticed"
            epochs.append(_epoch(process.wait_for_line("broker is registered")))
            assert create(node.broker, f"topic-{start}") == [ErrorCode.NONE]
            process.send(number)
            ended = process.wait()
        assert ended.exit_code == 0
        assert not [line for line in ended.lines if "ERROR" in line or "Traceback" in line]
        assert str(epochs[-1]) in (node.data / CLEAN_SHUTDOWN).read_text()
        # The old registration was gone: no start had to wait for a session to end.
        assert not [line for line in ended.lines if "refused" in line]
    assert epochs == sorted(set(epochs))
    with node.process:
        assert read_topics(node.broker).keys() == {"topic-0", "topic-1", "topic-2"}


def test_a_stop_asked_for_while_it_starts(node: Node) -> None:
    """Whenever the signal comes, the process ends at once and the next start succeeds."""
    process = node.process
    process.launch()
    process.wait_for_line("Became the active controller")
    assert process.terminate().exit_code == 0
    with node.process:
        assert create(node.broker, "topic") == [ErrorCode.NONE]


def test_a_stop_asked_for_twice(node: Node) -> None:
    with node.process as process:
        process.send(signal.SIGTERM)
        process.send(signal.SIGTERM)
        assert process.wait().exit_code == 0


def test_a_killed_node_leaves_no_mark_of_a_clean_stop(node: Node) -> None:
    with node.process as process:
        assert process.kill().exit_code == -signal.SIGKILL
    assert not (node.data / CLEAN_SHUTDOWN).exists()

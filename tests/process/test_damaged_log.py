"""A log that is not as the node left it: damage stops the node, a torn tail is cut off."""

import re
from pathlib import Path

import pytest
from tests.process.failed_nodes import refused
from tests.support.node import LOG_DIRECTORY, Node
from tests.support.topics import create, read_topics

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import read_batches

NAMES = [f"topic-{number}" for number in range(8)]


@pytest.fixture
def used(node: Node) -> Node:
    """A node with some topics that was killed."""
    with node.process as process:
        for name in NAMES:
            assert create(node.broker, name) == [ErrorCode.NONE]
        process.kill()
    return node


def positions(file: Path) -> list[int]:
    """Return where each batch begins."""
    return [batch.position for batch in read_batches(file.read_bytes())]


def flip(file: Path, position: int) -> None:
    """Damage one byte."""
    data = bytearray(file.read_bytes())
    data[position] ^= 0x10
    file.write_bytes(data)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("inside", [8, 70], ids=["its length", "its records"])
def test_damage_stops_the_node(used: Node, place: str, inside: int) -> None:
    starts = positions(used.first_segment)
    index = {"first": 0, "middle": len(starts) // 2, "last": len(starts) - 1}[place]
    flip(used.first_segment, starts[index] + inside)
    line = refused(used)
    assert str(used.first_segment) in line
    assert re.search(r"offset \d+", line), "an operator wants to know where"
    assert re.search(r"Stop the node, keep a copy of", line), "and what to do"


def test_a_log_that_was_emptied_stops_the_node(used: Node) -> None:
    used.first_segment.write_bytes(b"")
    assert str(used.metadata_log) in refused(used)


def test_acknowledged_batches_that_are_gone_stop_the_node(used: Node) -> None:
    starts = positions(used.first_segment)
    used.first_segment.write_bytes(used.first_segment.read_bytes()[: starts[-3]])
    assert str(used.first_segment) in refused(used)


@pytest.mark.parametrize("kind", ["half a batch", "zeros", "a few bytes"])
def test_a_torn_tail_is_cut_off_and_reported(used: Node, kind: str) -> None:
    data = used.first_segment.read_bytes()
    last = data[positions(used.first_segment)[-1] :]
    tail = {"half a batch": last[: len(last) // 2], "zeros": bytes(4096), "a few bytes": last[:5]}
    used.first_segment.write_bytes(data + tail[kind])
    with used.process as process:
        line = process.wait_for_line(str(used.first_segment))
        assert re.search(rf"\b{len(tail[kind])}\b", line), line
        assert read_topics(used.broker).keys() == set(NAMES)
        assert create(used.broker, "after") == [ErrorCode.NONE]
        process.kill()
    with used.process:
        assert read_topics(used.broker).keys() == {*NAMES, "after"}


def test_indexes_that_are_damaged_or_gone_are_rebuilt(used: Node) -> None:
    used.first_segment.with_suffix(".index").write_bytes(b"no index at all")
    used.first_segment.with_suffix(".timeindex").unlink()
    with used.process:
        assert read_topics(used.broker).keys() == set(NAMES)


SNAPSHOT = "00000000000000000000-0000000000.checkpoint"


@pytest.mark.parametrize(
    "name",
    [
        f"{LOG_DIRECTORY}/leader-epoch-checkpoint",
        f"{LOG_DIRECTORY}/partition.metadata",
        f"{LOG_DIRECTORY}/kvorum-flushed-offset",
        f"{LOG_DIRECTORY}/{SNAPSHOT}",
    ],
)
@pytest.mark.parametrize("content", [b"", b"garbage"], ids=["empty", "garbage"])
def test_small_files_that_are_damaged_stop_the_node(used: Node, name: str, content: bytes) -> None:
    file = used.data / name
    if not content and file.name == "leader-epoch-checkpoint":
        pytest.skip("as good as none: it is derived from the log")
    file.chmod(0o600)
    file.write_bytes(content)
    assert str(file) in refused(used)


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "kvorum-flushed-offset"])
def test_small_files_that_are_gone_are_rebuilt(used: Node, name: str) -> None:
    file = used.metadata_log / name
    file.unlink()
    with used.process:
        assert read_topics(used.broker).keys() == set(NAMES)
        assert create(used.broker, "after") == [ErrorCode.NONE]
    assert file.exists()

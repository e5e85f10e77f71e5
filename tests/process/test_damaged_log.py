"""A log that is not as the node left it: damage stops the node, a torn tail is cut off.

Every kind of damage is in unit/storage/metadata_log; here is what an operator sees of it.
"""

import re
from pathlib import Path

import pytest
from tests.process.failed_nodes import refused
from tests.support.node import Node
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


def test_damage_stops_the_node(used: Node) -> None:
    starts = positions(used.first_segment)
    flip(used.first_segment, starts[len(starts) // 2] + 70)
    line = refused(used)
    assert str(used.first_segment) in line
    assert re.search(r"offset \d+", line), "an operator wants to know where"
    assert re.search(r"Stop the node, keep a copy of", line), "and what to do"


def test_a_torn_tail_is_cut_off_and_reported(used: Node) -> None:
    data = used.first_segment.read_bytes()
    last = data[positions(used.first_segment)[-1] :]
    tail = last[: len(last) // 2]
    used.first_segment.write_bytes(data + tail)
    with used.process as process:
        line = process.wait_for_line(str(used.first_segment))
        assert re.search(rf"\b{len(tail)}\b", line), line
        assert read_topics(used.broker).keys() == set(NAMES)
        assert create(used.broker, "after") == [ErrorCode.NONE]
        process.kill()
    with used.process:
        assert read_topics(used.broker).keys() == {*NAMES, "after"}


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "kvorum-flushed-offset"])
def test_small_files_that_are_gone_are_rebuilt(used: Node, name: str) -> None:
    file = used.metadata_log / name
    file.unlink()
    with used.process:
        assert read_topics(used.broker).keys() == set(NAMES)
        assert create(used.broker, "after") == [ErrorCode.NONE]
    assert file.exists()

"""The end of a node that fails: it refuses to start, or its disk is full."""

from collections.abc import Mapping
from pathlib import Path

from tests.support.node import Node
from tests.support.node_process import Ended

OWN_LINE = "kvorum server: "


DERIVED = frozenset({".index", ".timeindex", ".snapshot"})


def refused(node: Node) -> str:
    """Start a node that has to refuse, and return the line that says why."""
    before = contents(node.data)
    ended = node.process.run_to_end()
    assert_one_line(ended)
    assert contents(node.data) == before, "a start that fails changes nothing"
    return ended.last_line


def assert_one_line(ended: Ended) -> None:
    """It failed, said so last and once, and threw no traceback at the operator."""
    assert ended.exit_code == 1
    assert [line for line in ended.lines if line.startswith(OWN_LINE)] == [ended.last_line]
    assert not [line for line in ended.lines if "Traceback" in line or "this is a defect" in line]


def contents(folder: Path) -> Mapping[str, bytes]:
    """Return every file but those that any start may make again from the others."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != ".lock" and file.suffix not in DERIVED
    }


LONG = "x" * 200


def assert_stopped_loudly(ended: Ended, directory: Path, words: str) -> None:
    """It ended with an error code and a last line that says what failed, and where."""
    assert ended.exit_code == 1
    assert words in ended.last_line
    assert str(directory) in ended.last_line

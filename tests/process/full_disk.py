"""The end of a node on a full disk."""

from pathlib import Path

from tests.support.node_process import Ended

LONG = "x" * 200


def assert_stopped_loudly(ended: Ended, directory: Path, words: str) -> None:
    """It ended with an error code and a last line that says what failed, and where."""
    assert ended.exit_code == 1
    assert words in ended.last_line
    assert str(directory) in ended.last_line

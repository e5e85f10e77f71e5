"""The rule that finds unused code: what it reads, what it reports, and that its lists are sound."""

from pathlib import Path

import pytest
from tests.support.programs import run_python
from tools.unused_code import (
    ALLOWED,
    LEFTOVERS,
    CheckError,
    Finding,
    keys_in,
    parsed,
    problems,
    without,
)

FOUND = Finding("server/kvorum/raft/epoch_election.py", 7, "function", "tally")
SOURCE = """\
def used() -> int: return 1
def only_tests_call_this() -> int: return 2
VALUE = used()
def main() -> int: return VALUE
main()
"""


@pytest.mark.process
def test_what_vulture_prints_is_read(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(SOURCE)
    done = run_python("-m", "vulture", "module.py", folder=tmp_path)
    assert parsed(done.stdout) == [Finding("module.py", 2, "function", "only_tests_call_this")]


def test_a_line_that_is_not_understood_is_not_a_success() -> None:
    with pytest.raises(CheckError, match="cannot open"):
        parsed("cannot open module.py\n")


def test_a_name_that_is_not_listed_is_reported_with_its_place() -> None:
    assert problems([FOUND], []) == [
        "server/kvorum/raft/epoch_election.py:7: unused function tally (kvorum.raft tally)"
    ]
    assert problems([FOUND], ["kvorum.raft tally"]) == []


def test_a_listed_name_that_is_not_found_is_reported() -> None:
    assert problems([], ["kvorum.raft tally"]) == [
        "listed, but not found: kvorum.raft tally (--prune removes it)"
    ]


def test_pruning_takes_out_lines_and_keeps_the_comments() -> None:
    text = "# Head.\n\nkvorum.raft tally  # a reason\nkvorum.wire from_json\n"
    assert keys_in(text) == ["kvorum.raft tally", "kvorum.wire from_json"]
    assert without(text, frozenset({"kvorum.raft tally"})) == "# Head.\n\nkvorum.wire from_json\n"


def test_whatever_may_stay_has_a_reason_and_stands_in_one_list() -> None:
    lines = ALLOWED.read_text("utf-8").splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in listed if not line.partition("  # ")[2]] == []
    keys = keys_in(ALLOWED.read_text("utf-8")) + keys_in(LEFTOVERS.read_text("utf-8"))
    assert len(keys) == len(set(keys))

"""The line about the progress of a command: on a terminal, beside its output, and taken away."""

import io
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.waiting import wait_for

from kvorum.cli import main, progress
from kvorum.cli.progress import (
    FIRST_S,
    PAUSE_S,
    LiveLine,
    ReadProgress,
    TimedProgress,
    read_progress,
)
from kvorum.inspection.reading import no_report
from kvorum.wire.records import BatchOptions, RecordData, build_batch

MIB = 1 << 20
CLEARED = "\r\033[K"
LOG = "00000000000000000000.log"
READERS: dict[str, Sequence[str]] = {
    "kvorum dump-log": ["dump-log", "--files"],
    "kvorum log": ["log", "check"],
    "kvorum log, decode": ["log", "decode"],
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_is_written_from_time_to_time_and_taken_away() -> None:
    now = 100.0
    terminal = Terminal()
    line = LiveLine(terminal)
    shown = ReadProgress("kvorum log", line, lambda: now)
    one, other = Path("one"), Path("other")
    shown.tell(one, 5 * MIB)
    assert terminal.getvalue() == ""
    now += FIRST_S
    shown.tell(one, 7 * MIB)
    assert terminal.getvalue().endswith("kvorum log: 7 MiB read, now one")
    shown.tell(other, MIB)
    assert terminal.getvalue().endswith("now one")
    now += PAUSE_S
    shown.tell(other, 2 * MIB)
    assert terminal.getvalue().endswith("kvorum log: 9 MiB read, now other")
    line.clear()
    assert terminal.getvalue().endswith(f"other{CLEARED}")


def test_a_line_is_never_wrapped() -> None:
    terminal = Terminal()
    LiveLine(terminal).show("a" * 1000)
    assert terminal.getvalue() == CLEARED + "a" * 79


def test_without_a_terminal_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    console = io.StringIO()
    monkeypatch.setattr(sys, "stderr", console)
    with read_progress("kvorum log") as reading:
        assert reading.tell is no_report
    with TimedProgress(LiveLine(), lambda: "never"):
        pass
    assert console.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    with read_progress("kvorum log") as reading:
        assert reading.tell is not no_report


def test_other_lines_are_written_where_the_line_was(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "FIRST_S", 0.0)
    with read_progress("kvorum log") as reading:
        reading.tell(Path("one"), MIB)
        reading.warn("a gap")
    shown = f"{CLEARED}kvorum log: 1 MiB read, now one{CLEARED}"
    assert terminal.getvalue() == f"{shown}kvorum log: a gap\n"


def test_the_time_goes_on_while_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(progress, "PAUSE_S", 0.001)
    with TimedProgress(LiveLine(terminal), lambda: "0 of 1 quorums"):
        wait_for(
            lambda: terminal.getvalue().count("0 of 1 quorums, 0:00") > 1,
            "the line is written again",
            otherwise=terminal.getvalue,
        )
    assert terminal.getvalue().endswith(CLEARED)


@pytest.mark.parametrize("name", READERS)
def test_commands_that_read_large_files_show_how_far_they_are(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = tmp_path / "topic-0" / LOG
    segment.parent.mkdir()
    segment.write_bytes(build_batch([RecordData(b"k", b"v")], BatchOptions()))
    output = io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    assert main([*READERS[name], str(segment)]) == 0
    expected = output.getvalue()

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "FIRST_S", 0.0)
    assert main([*READERS[name], str(segment)]) == 0
    assert f"{name.partition(',')[0]}: 0 MiB read, now " in terminal.getvalue()
    assert terminal.getvalue().endswith(CLEARED)
    assert isinstance(sys.stdout, io.StringIO)
    assert sys.stdout.getvalue() == expected

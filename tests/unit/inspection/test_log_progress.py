"""The line that says how far a command of `kvorum log` has come."""

import io
from pathlib import Path

import pytest
from tests.support.golden_data import METADATA_NODES

from kvorum.cli.log_tool.progress import FIRST_S, PAUSE_S, Progress, progress
from kvorum.inspection.log_check.check import check_paths
from kvorum.inspection.metadata_log.folding import Moment, fold_until
from kvorum.inspection.reading import no_report

MIB = 1 << 20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_is_written_from_time_to_time_and_taken_away() -> None:
    now = 100.0
    terminal = Terminal()
    shown = Progress(terminal, lambda: now)
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
    shown.end()
    assert terminal.getvalue().endswith("other\r\033[K")


def test_without_a_terminal_nothing_is_written() -> None:
    console = io.StringIO()
    with progress(console) as tell:
        assert tell is no_report
    assert console.getvalue() == ""
    with progress(Terminal()) as tell:
        assert tell is not no_report


def test_readings_tell_how_far_they_are(golden_sets: Path) -> None:
    node = golden_sets / METADATA_NODES[1]
    told: list[tuple[Path, int]] = []

    def tell(file: Path, position: int) -> None:
        told.append((file, position))

    def warn(text: str) -> None:
        pytest.fail(text)

    fold_until(node, Moment(1500), warn=warn, tell=tell)
    assert told
    count = len(told)
    check_paths([node], tell=tell)
    segments = {file.name for file, _ in told[count:] if file.suffix == ".log"}
    assert segments == {file.name for file in node.glob("*/*.log")}

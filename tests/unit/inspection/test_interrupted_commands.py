"""The findings of `kvorum log check`, `log diff` and `dump-log` that Ctrl-C came after."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.batch_maker import make_batch

from kvorum.cli import INTERRUPTED, dump_log, main
from kvorum.cli.log_tool import check, diff
from kvorum.cli.progress import LiveLine, Reading
from kvorum.inspection.reading import Tell
from kvorum.storage.names import offset_name

Listen = Callable[[ModuleType, Tell], None]
Interrupt = Callable[[ModuleType, Path], None]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Return the segment of a log that has damage at byte 73, where its batch 1 begins."""
    return segment(tmp_path / "a" / "orders-0", make_batch(0) + make_batch(1)[:-1] + b"x")


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """Return the segment of a log that is read after the other one."""
    return segment(tmp_path / "z" / "orders-1", make_batch(0) + make_batch(1))


@pytest.fixture
def listen(monkeypatch: pytest.MonkeyPatch) -> Listen:
    """Have a function called with each place that a command has come to."""

    def set_up(command: ModuleType, tell: Tell) -> None:
        @contextmanager
        def read_progress(name: str) -> Generator[Reading]:
            reading = Reading(name, LiveLine())
            reading.tell = tell
            yield reading

        monkeypatch.setattr(command, "read_progress", read_progress)

    return set_up


@pytest.fixture
def interrupt(listen: Listen) -> Interrupt:
    """Have a command be interrupted when it has come to a file."""

    def set_up(command: ModuleType, file: Path) -> None:
        def tell(read: Path, _position: int) -> None:
            if read == file:
                raise KeyboardInterrupt

        listen(command, tell)

    return set_up


def segment(directory: Path, data: bytes) -> Path:
    directory.mkdir(parents=True)
    file = directory / offset_name(0, ".log")
    file.write_bytes(data)
    return file


def test_a_check_reports_the_damage_that_it_found_before_an_interrupt(
    tmp_path: Path,
    damaged: Path,
    later: Path,
    interrupt: Interrupt,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupt(check, later)
    assert main(["log", "check", str(tmp_path)]) == INTERRUPTED
    printed = capsys.readouterr()
    first, *_, last = printed.out.splitlines()
    assert first.startswith(f"damage: {damaged} (byte 73, offset 1): ")
    assert last.startswith(f"interrupted at byte 0 of {later}: ")
    assert last.endswith(" files so far: 1 damaged")
    assert printed.err == "kvorum log: interrupted\n"


def test_an_interrupted_check_calls_nothing_sound(
    tmp_path: Path, later: Path, interrupt: Interrupt, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(check, later)
    assert main(["log", "check", str(tmp_path)]) == INTERRUPTED
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"interrupted at byte 0 of {later}: 1 file so far: no damage"
    )


def test_the_json_of_an_interrupted_check_has_no_verdict(
    tmp_path: Path,
    damaged: Path,
    later: Path,
    interrupt: Interrupt,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupt(check, later)
    assert main(["log", "check", "--json", str(tmp_path)]) == INTERRUPTED
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["type"] for line in lines} == {"finding", "interrupted"}
    assert lines[0]["file"] == str(damaged)
    assert lines[-1]["file"] == str(later)
    assert (lines[-1]["position"], lines[-1]["damage"]) == (0, 1)
    assert "verdict" not in lines[-1]


def test_damage_in_the_segment_that_is_being_read_is_reported(
    damaged: Path, interrupt: Interrupt, capsys: pytest.CaptureFixture[str]
) -> None:
    """The damage is at the beginning of a segment, and the interrupt comes after it."""
    damaged.write_bytes(make_batch(0)[:-1] + b"x" + make_batch(1))
    interrupt(check, damaged)
    assert main(["log", "check", str(damaged)]) == INTERRUPTED
    assert capsys.readouterr().out.startswith(f"damage: {damaged} (byte 0, offset 0): ")


def test_damage_in_a_segment_that_a_node_has_replaced_is_not_reported(
    damaged: Path, listen: Listen, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged.write_bytes(make_batch(0)[:-1] + b"x" + make_batch(1))

    def replace(_read: Path, _position: int) -> None:
        new = damaged.with_suffix(".swap")
        new.write_bytes(make_batch(1))
        new.replace(damaged)
        raise KeyboardInterrupt

    listen(check, replace)
    assert main(["log", "check", str(damaged.parent)]) == INTERRUPTED
    assert "damage:" not in capsys.readouterr().out


def test_a_comparison_reports_the_damage_that_it_found_before_an_interrupt(
    damaged: Path, later: Path, interrupt: Interrupt, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(diff, later)
    assert main(["log", "diff", str(damaged.parent), str(later.parent)]) == INTERRUPTED
    printed = capsys.readouterr()
    first, last = printed.out.splitlines()
    assert first.startswith(f"{damaged}: damaged at byte 73")
    assert last == f"interrupted at byte 0 of {later}: 1 difference so far"
    assert printed.err == "kvorum log: interrupted\n"


def test_the_json_of_an_interrupted_comparison_has_no_log_end_offsets(
    damaged: Path, later: Path, interrupt: Interrupt, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(diff, later)
    assert main(["log", "diff", "--json", str(damaged.parent), str(later.parent)]) == INTERRUPTED
    found = json.loads(capsys.readouterr().out)
    assert found["interrupted"] == {"file": str(later), "position": 0}
    assert len(found["differences"]) == 1
    assert set(found) == {"interrupted", "differences"}


def test_an_interrupted_dump_prints_the_gaps_that_it_found(
    tmp_path: Path, later: Path, interrupt: Interrupt, capsys: pytest.CaptureFixture[str]
) -> None:
    first = segment(tmp_path / "a", make_batch(0) + make_batch(5))
    interrupt(dump_log, later)
    assert main(["dump-log", "--files", f"{first},{later}", "--deep-iteration"]) == INTERRUPTED
    assert capsys.readouterr().err.splitlines() == [
        f"Non-consecutive offsets in {first}",
        "  0 is followed by 5",
        "kvorum dump-log: interrupted",
    ]

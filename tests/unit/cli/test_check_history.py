"""The command `kvorum check-history`: what it prints, and its exit codes."""

import io
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.page_blocks import page_block, shown_commands
from tests.unit.client_histories.history_lines import Lines, poll, send

from kvorum.cli import FAILED, INTERRUPTED, OK, WRONG_USAGE, main
from kvorum.cli.progress import LiveLine, Reading
from kvorum.client_histories.consumption import Consumption


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A history in which everything was polled."""
    lines = Lines()
    lines.add(1, send(1, 10, 0))
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    return written(tmp_path / "sound.jsonl", lines)


@pytest.fixture
def unseen(tmp_path: Path) -> Path:
    """A history in which three values were not polled."""
    lines = Lines()
    for offset in range(3):
        lines.add(1, send(1, offset, offset), function="send")
    return written(tmp_path / "unseen.jsonl", lines)


def written(path: Path, lines: Lines) -> Path:
    path.write_bytes(b"".join(lines.texts()))
    return path


def run(*words: str | Path) -> int:
    return main(["check-history", *map(str, words)])


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.jsonl").write_text(page_block("docs/histories.md", "text", '"f":"assign"'))
    block = page_block("docs/histories.md", "console", "orders.jsonl")
    ((command, lines),) = shown_commands(block)
    assert main(command.removeprefix("kvorum ").split()) == FAILED
    assert capsys.readouterr().out.splitlines() == lines


def test_a_sound_history(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(sound) == OK
    assert capsys.readouterr().out.splitlines() == [
        f"sound: {sound}: 2 operations (2 ok, 0 fail, 0 info), 1 key"
    ]


def test_each_file_is_a_history_of_its_own(
    sound: Path, unseen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unseen, sound) == FAILED
    verdicts = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert verdicts == ["unseen,", "broken:", "sound:"]


def test_standard_input(
    sound: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sound.read_bytes())))
    assert run("-") == OK
    assert capsys.readouterr().out.startswith("sound: -: 2 operations ")


def test_a_bound_for_cases(unseen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--cases", "1", unseen) == FAILED
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "unseen, never legal: 3 cases"
    assert sum(line.startswith("  - ") for line in lines) == 1
    assert "  and 2 more" in lines
    assert run("--cases", "0", unseen) == FAILED
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_what_is_legal_breaks_nothing(unseen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--no-final-read", unseen) == OK
    assert capsys.readouterr().out.startswith("unseen, reported: 3 cases\n")


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--isolation-level=read_uncommitted", "precommitted-read"),
        ("--no-idempotence", "duplicate"),
    ],
)
def test_the_settings_of_clients(option: str, name: str, tmp_path: Path) -> None:
    lines = Lines()
    found = [(0, 10)] if name == "precommitted-read" else [(0, 10), (1, 10)]
    lines.add(1, send(1, 10, 0), *([poll(k1=found)] if name == "precommitted-read" else []))
    lines.add(2, poll(k1=found), function="poll")
    file = written(tmp_path / "history.jsonl", lines)
    assert run(file) == FAILED
    assert run(option, file) == OK


def test_what_is_never_legal_comes_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    lines.add(1, send(1, 10, 0), send(1, 12, 2), send(1, 13, 1))
    lines.add(2, poll(k1=[(0, 10), (1, 13), (2, 12)]), function="poll")
    assert run(written(tmp_path / "history.jsonl", lines)) == FAILED
    heads = [line for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert [head.split(",")[0] for head in heads[:2]] == ["int-nonmonotonic-send", "int-send-skip"]


def test_an_operation_is_shown_by_what_it_did_to_the_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    lines.add(1, *[send(1, value, value) for value in range(14)], send(2, 99, 0))
    lines.add(2, poll(k2=[(0, 99)]), function="poll")
    assert run(written(tmp_path / "history.jsonl", lines)) == FAILED
    (sent, *_) = [line for line in capsys.readouterr().out.splitlines() if "process 1" in line]
    shown = " ".join(f"{value}:{value}" for value in range(12))
    assert sent == f"    lines 1 and 2: process 1, ok txn: sent key 1 {shown} and 2 more"


def test_how_much_was_read_is_reported(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[tuple[Path, int]] = []

    @contextmanager
    def recorded(name: str) -> Generator[Reading]:
        reading = Reading(name, LiveLine(io.StringIO()))
        reading.tell = lambda file, position: reports.append((file, position))
        yield reading

    monkeypatch.setattr("kvorum.cli.check_history.read_progress", recorded)
    assert run(sound) == OK
    assert reports == [(sound, len(sound.read_bytes().splitlines(keepends=True)[0]))]


def test_json(unseen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json", "--cases", "1", unseen) == FAILED
    case, anomaly, history = map(json.loads, capsys.readouterr().out.splitlines())
    named = {"file": str(unseen), "anomaly": "unseen", "legality": "never"}
    assert anomaly == {"type": "anomaly", **named, "cases": 3}
    assert case == {
        "type": "case",
        **named,
        "problem": "value 0 at offset 0 was acknowledged, and no ok operation polled it",
        "operations": [
            {
                "invokedLine": 1,
                "completedLine": 2,
                "p": 1,
                "type": "ok",
                "f": "send",
                "sent": [["1", 0, 0]],
                "polled": [],
            }
        ],
        "logs": [{"key": "1", "log": [[0, 0], [1, 1], [2, 2]]}],
    }
    assert history == {
        "type": "history",
        "file": str(unseen),
        "verdict": "broken",
        "operations": 3,
        "ok": 3,
        "fail": 0,
        "info": 0,
        "keys": 1,
        "tornLine": None,
    }


def test_what_is_excluded_breaks_nothing(unseen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--exclude=lost-write,unseen", unseen) == OK
    assert "unseen, excluded from the check: 3 cases" in capsys.readouterr().out
    assert run("--exclude=lost-write", unseen) == FAILED


def test_an_anomaly_to_exclude_is_one_that_is_looked_for(
    unseen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--exclude=lost-writes", unseen) == WRONG_USAGE
    assert "'lost-writes' is not one of inconsistent-offsets, duplicate" in capsys.readouterr().err


def test_a_torn_line(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sound.open("ab") as file:
        file.write(b'{"p": 1, "ty')
    assert run(sound) == OK
    assert capsys.readouterr().out.startswith(
        "line 5 is torn: the history was read to the line before it\nsound: "
    )


def test_what_is_not_a_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text('{"p": 1}\n')
    assert run(file) == WRONG_USAGE
    assert capsys.readouterr().err == (
        f"kvorum check-history: {file}:1: t, the time, is missing, and not an integer of 64 bits\n"
    )
    assert run(tmp_path / "none") == WRONG_USAGE
    assert capsys.readouterr().err == (
        f"kvorum check-history: cannot read {tmp_path / 'none'}: No such file or directory\n"
    )


@pytest.fixture
def interrupted_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Ctrl-C come when the logs of all keys are done with."""

    def interrupt(_self: Consumption) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Consumption, "end", interrupt)


@pytest.mark.usefixtures("interrupted_at_the_end")
def test_an_interrupted_check_prints_the_cases_that_it_found(
    unseen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unseen) == INTERRUPTED
    printed = capsys.readouterr()
    assert printed.out.startswith("unseen, never legal: 3 cases\n")
    assert printed.out.endswith(f"interrupted: {unseen}: 1 of 1 key done with, and no verdict\n")
    assert printed.err == "kvorum check-history: interrupted\n"


@pytest.mark.usefixtures("interrupted_at_the_end")
def test_the_json_of_an_interrupted_check_has_no_verdict(
    unseen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--json", unseen) == INTERRUPTED
    *cases, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["type"] for each in cases} == {"case", "anomaly"}
    assert last == {"type": "interrupted", "file": str(unseen), "keysChecked": 1, "keys": 1}

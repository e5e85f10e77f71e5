"""Texts that the encoding of the output lacks, and bytes that the input's cannot read."""

import io
from pathlib import Path
from typing import Final

import pytest

from kvorum.cli import FAILED, main
from kvorum.cli.shell_tool.session import Session, run_lines
from kvorum.inspection.shell.image_tree import Directory, Node

HISTORY: Final = r"""
{"t":1,"p":1,"type":"invoke","f":"send","v":[["send","KEY",101],["send","KEY",102]]}
{"t":2,"p":1,"type":"ok","f":"send","v":[["send","KEY",[0,101]],["send","KEY",[1,102]]]}
{"t":3,"p":2,"type":"invoke","f":"poll","v":[["poll"]]}
{"t":4,"p":2,"type":"ok","f":"poll","v":[["poll",{"KEY":[[1,102]]}]]}
"""
"""The history of a value that is acknowledged and never polled."""


@pytest.mark.parametrize(
    ("encoding", "key"), [("ascii", r"\u4e2d"), ("latin-1", r"\u20ac"), ("utf-8", r"\ud800")]
)
def test_a_command_prints_a_question_mark(
    encoding: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text(HISTORY.strip().replace("KEY", key))
    printed = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(printed, encoding=encoding))
    assert main(["check-history", str(history)]) == FAILED
    assert b"key ? " in printed.getvalue()


def test_the_shell_reads_bytes_that_are_no_text_as_java_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = io.BytesIO(b"pwd\nman caf\xe9\npwd\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(typed, encoding="utf-8", errors="strict"))
    content: dict[str, Node] = {}
    root = Directory(lambda: content, content.get)
    run_lines(Session(lambda: root, lambda: None))
    first, second, third, end = capsys.readouterr().out.splitlines()
    assert (first, third, end) == (">> /", ">> /", ">> ")
    assert second.startswith(">> man: unknown command caf\N{REPLACEMENT CHARACTER}.")

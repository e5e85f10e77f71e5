"""The help of every command: no failure, and the values of options have the same names."""

import re

import pytest

from kvorum.cli import COMMANDS, main

SUB_COMMANDS = (
    *("cluster cluster-id", "cluster list-endpoints", "features upgrade", "quorum describe"),
    *("quorum remove-controller", "storage format", "log check", "log why"),
)
OPTION = re.compile(r"--([a-z-]+) ([A-Z_]+)\b")


def help_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the help of a command, which ends with the code 0."""
    assert not exit_code_of([*words, "--help"])
    return capsys.readouterr().out


def exit_code_of(words: list[str]) -> object:
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize("command", [*COMMANDS, *SUB_COMMANDS])
def test_a_help_that_is_asked_for_is_no_failure(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert help_of(command.split(), capsys).startswith("usage: kvorum ")


@pytest.mark.parametrize(
    "command", [one for one in SUB_COMMANDS if not one.startswith("log")], ids=str
)
def test_no_value_is_called_as_its_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    named = OPTION.findall(help_of(command.split(), capsys))
    assert [name for name, value in named if value == name.upper().replace("-", "_")] == []

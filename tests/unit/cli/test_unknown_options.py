"""Options that a command does not know: the command's own usage, and the option that is meant."""

import pytest

from kvorum.cli import WRONG_USAGE, main

REASSIGN = "quorum --bootstrap-server a:1 reassign"


@pytest.mark.parametrize(
    ("line", "command", "unknown", "meant"),
    [
        ("dev --prot 9092", "dev", "--prot", "--port"),
        ("server node.properties --overide=a=b", "server", "--overide", "--override"),
        ("simulate --shrnk", "simulate", "--shrnk", "--shrink"),
        ("report --tabels x --output y", "report", "--tabels", "--tables"),
        ("pipeline --inptu x", "pipeline", "--inptu", "--input"),
        ("log why orders 0 disk --jsn", "log why", "--jsn", "--json"),
        ("quorum recover --excute", "quorum recover", "--excute", "--execute"),
        (f"{REASSIGN} --cancle", "quorum reassign", "--cancle", "--cancel"),
    ],
)
def test_the_command_shows_its_usage_and_the_option_that_is_meant(
    line: str, command: str, unknown: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == WRONG_USAGE
    *usage, problem = capsys.readouterr().err.splitlines()
    assert usage[0].startswith(f"usage: kvorum {command} [")
    assert problem == (
        f"kvorum {command}: error: unrecognized arguments: {unknown}; did you mean {meant}?"
    )


@pytest.mark.parametrize("line", ["dev --zzz", "dev extra", "simulate --debug"])
def test_nothing_is_suggested_where_nothing_is_spelled_alike(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, unknown = line.split()
    assert main([command, unknown]) == WRONG_USAGE
    assert capsys.readouterr().err.endswith(
        f"kvorum {command}: error: unrecognized arguments: {unknown}\n"
    )


@pytest.mark.parametrize("line", ["dev --por x", "simulate --seeds x", "dev --port=9092 --brok=x"])
def test_a_known_option_and_the_begin_of_one_are_read(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The value is what is wrong."""
    assert main(line.split()) == WRONG_USAGE
    assert "invalid int value: 'x'" in capsys.readouterr().err


def test_a_tool_of_kafkas_keeps_kafkas_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "--bootstrap-server", "a:1", "describe", "--sttaus"]) == 1
    assert capsys.readouterr().err.endswith("'--sttaus'\n\nDid you mean:\n\t--status\n")
    assert main(["storage", "format", "--ignore-formated"]) == 1
    assert capsys.readouterr().err.endswith("error: argument --config/-c is required\n")

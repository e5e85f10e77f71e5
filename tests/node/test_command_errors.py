"""A command names its failure in one line, with the exit code that fits."""

from pathlib import Path

import pytest

from kvorum.cli import FAILED, WRONG_USAGE, main


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_data_that_cannot_be_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["dev", "--port", "0", "--data", str(tmp_path / "file" / "data")]) == FAILED
    told = complaint(capsys)
    assert told.startswith(f"kvorum dev: {tmp_path}/file/data: ")
    assert "Not a directory" in told


def test_a_port_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--port", "99999", "--data", str(tmp_path)]) == FAILED
    assert "there is no port 99999" in complaint(capsys)


@pytest.mark.parametrize("size", [["--controllers", "0"], ["--brokers", "-1"]])
def test_a_size_that_is_not_a_cluster(size: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", *size]) == WRONG_USAGE
    assert "at least 1 controller" in complaint(capsys)


@pytest.mark.parametrize("command", [[], ["frob"], ["server"], ["dev", "--frob"]])
def test_wrong_usage(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert main(command) == WRONG_USAGE
    assert "usage: kvorum" in capsys.readouterr().err


def test_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "server" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["dev", "server", "storage", "dump-log", "pipeline"])
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: kvorum {command}")

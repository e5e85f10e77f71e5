"""Wrong options of `kvorum dev`: refused in one line that names the option."""

import os
from pathlib import Path

import pytest

from kvorum.cli import main
from kvorum.cli.ready_file import ReadyFileError, write_ready_file

REFUSALS = {
    "--controllers 0": "--controllers 0: a cluster has at least 1 controller",
    "--brokers -1 --controllers 2": "--controllers 2 --brokers -1: a cluster has at least 1 cont",
    "--override num.partition=2": "--override: unknown configuration key 'num.partition', did you",
    "--override num.partitions": "--override: Invalid override 'num.partitions': expected key=val",
    "--topic orders:0": "argument --topic: 'orders:0' is not NAME or NAME:PARTITIONS",
    "--controllers 101": "--controllers 101: a process has at most 100 controllers",
    "--brokers 999999999999": "--brokers 999999999999: a process has at most 100 controllers and",
    "--port -1": "argument --port: -1 is not a number from 0 to 65535",
    "--port 65536": "argument --port: 65536 is not a number from 0 to 65535",
    "--topic orders:2147483648": "argument --topic: 'orders:2147483648' is not NAME or NAME:PART",
    "--topic :3": "argument --topic: ':3' is not NAME or NAME:PARTITIONS",
    "--host 0.0.0.0": "--host 0.0.0.0 needs --advertised-host: clients connect to a name",
    "--security ssl": "argument --security: invalid choice: 'ssl' (choose from 'tls', 'mtls', ",
    "--log-level loud": "argument --log-level: invalid choice: 'loud' (choose from 'debug', 'info'",
}


@pytest.mark.parametrize("words", REFUSALS)
def test_a_wrong_option_is_refused_by_its_name(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dev", *words.split()]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if REFUSALS[words] in line]
    assert line.startswith("kvorum dev: ")


def test_a_refused_start_leaves_an_older_ready_file_alone(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    ready.write_text("{}")
    assert main(["dev", "--ready-file", str(ready), "--controllers", "0"]) == 2
    assert ready.exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("missing/ready.json", "cannot be written: No such file or directory"),
        (".", "is a directory"),
        ("pipe", "is no regular file"),
    ],
)
def test_a_ready_file_that_cannot_be_written_is_refused_before_the_start(
    name: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    ready = tmp_path / name
    assert main(["dev", "--ready-file", str(ready)]) == 2
    assert capsys.readouterr().err == (
        f"kvorum dev: --ready-file {ready} {problem}: name a file in a directory that is there and "
        "that this user may write to\n"
    )


def test_a_ready_file_that_cannot_be_written_later_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadyFileError, match=r"--ready-file .*/x cannot be written: No such file"):
        write_ready_file(tmp_path / "gone" / "x", "{}")

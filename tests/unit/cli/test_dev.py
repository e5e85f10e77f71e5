"""Lines of `kvorum dev`: refusals that name the option, and what became of the data."""

import os
import tempfile
from collections.abc import Coroutine
from pathlib import Path

import pytest

from kvorum.cli import main
from kvorum.cli.ready_file import ReadyFileError, write_ready_file
from kvorum.metadata.address import Address
from kvorum.node import process
from kvorum.node.embedded.identity import new_identity, store_identity
from kvorum.node.embedded.temporary_folder import TemporaryFolder

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


@pytest.fixture
def _cluster_that_has_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the command believe that its cluster has run, with its data below a folder."""

    def run_in_loop(main: Coroutine[object, object, None]) -> None:
        main.close()

    monkeypatch.setattr(process, "run_in_loop", run_in_loop)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.usefixtures("_cluster_that_has_run")
def test_data_is_called_removed_after_it_was_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["dev"]) == 0
    assert capsys.readouterr().out == "kvorum: stopped; the data is removed\n"
    assert not list(tmp_path.iterdir())

    def remove(_: TemporaryFolder) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TemporaryFolder, "remove", remove)
    assert main(["dev"]) == 130
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("_cluster_that_has_run")
def test_data_that_could_not_be_removed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(_: TemporaryFolder) -> None:
        """Remove nothing."""

    monkeypatch.setattr(TemporaryFolder, "remove", remove)
    assert main(["dev"]) == 0
    (left,) = tmp_path.iterdir()
    assert capsys.readouterr().out == (
        f"kvorum: stopped; the data is not removed: the next kvorum dev tries to remove {left} "
        "again\n"
    )


@pytest.mark.usefixtures("_cluster_that_has_run")
@pytest.mark.parametrize("names", [("b", "a", "d", ".git"), ("server.properties",)])
def test_a_directory_with_other_files_takes_no_data(
    names: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert main(["dev", "--data", str(tmp_path)]) == 2
    named = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
    assert capsys.readouterr().err == (
        f"kvorum dev: --data {tmp_path}: the directory has no cluster.properties, but other files "
        f"({named}): give a new or an empty one\n"
    )


@pytest.mark.usefixtures("_cluster_that_has_run")
@pytest.mark.parametrize(
    "names",
    [
        (),
        ("data/.git/config", "cluster.properties"),
        ("server.properties", "data/meta.properties"),
        ("security/ca.pem", "cluster.properties.tmp", "lost+found"),
    ],
    ids=["empty", "of a cluster", "of an older release", "of an interrupted start"],
)
def test_a_directory_of_an_earlier_run_or_without_files_takes_data(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    if "cluster.properties" in names:
        store_identity(tmp_path, new_identity({1: Address("127.0.0.1", 1)}, broker_count=1))
    assert main(["dev", "--data", str(tmp_path)]) == 0
    assert main(["dev", "--data", str(tmp_path / "new")]) == 0

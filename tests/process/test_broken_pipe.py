"""Commands whose reader has gone, with real pipes: they end without a word of it.

The pipe's reading end is closed before the command starts, so that its first write meets that.
"""

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.node_process import KVORUM
from tests.support.topics import create
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.cli import main
from kvorum.cli.broken_pipe import READER_GONE
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode

DIRECTORY_ID = "JEXY6aqzQY-32P5TStzaFg"
HELP = [["--help"], ["storage", "format", "--help"], ["quorum", "--help"]]
QUICK_SEED = ["simulate", "--only", "quorum", "--seed", "1", "--duration", "2"]
FEATURE = ["--feature", "metadata.version=20"]
REMOVE = ["remove-controller", "-i", "1", "-d", DIRECTORY_ID, "--dry-run"]
READ_ONLY = {
    "dump-log, help": ["dump-log", "--help"],
    "simulate": QUICK_SEED,
    "simulate, digest": [*QUICK_SEED, "--digest"],
    "simulate, two processes": [*QUICK_SEED, "--seeds", "3", "--jobs", "2"],
    "random-uuid": ["storage", "random-uuid"],
    "version-mapping": ["storage", "version-mapping"],
    "feature-dependencies": ["storage", "feature-dependencies", *FEATURE],
    "remove-controller": ["quorum", "--bootstrap-server", "127.0.0.1:1", *REMOVE],
}


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a process whose output was not read."""

    exit_code: int
    stderr: str


def environment(*, is_buffered: bool) -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "" if is_buffered else "1"}


@pytest.fixture
def pipe() -> Iterator[int]:
    """The writing end of a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


@pytest.fixture(params=[True, False], ids=["buffered", "unbuffered"])
def is_buffered(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def run(pipe: int, arguments: Sequence[str], *, is_buffered: bool) -> Ended:
    done = subprocess.run(
        [*KVORUM, *arguments],
        stdout=pipe,
        stderr=subprocess.PIPE,
        env=environment(is_buffered=is_buffered),
        timeout=PATIENCE_S,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stderr)


@pytest.mark.parametrize("arguments", READ_ONLY.values(), ids=READ_ONLY)
def test_a_command_that_only_prints_ends_quietly(
    pipe: int, arguments: list[str], *, is_buffered: bool
) -> None:
    assert run(pipe, arguments, is_buffered=is_buffered) == Ended(READER_GONE, "")


@pytest.mark.parametrize("arguments", HELP, ids=" ".join)
def test_help_ends_quietly(pipe: int, arguments: list[str], *, is_buffered: bool) -> None:
    """argparse itself forgives a stream that it cannot write to."""
    ended = run(pipe, arguments, is_buffered=is_buffered)
    assert ended == Ended(READER_GONE if is_buffered else 0, "")


def test_a_dump_ends_quietly(golden_sets: Path, pipe: int, *, is_buffered: bool) -> None:
    controller = golden_sets / "dynamic-4.3.1" / "metadata" / "controller-1"
    log = controller / "__cluster_metadata-0" / "00000000000000000000.log"
    ended = run(pipe, ["dump-log", "--files", f"{log},{log}"], is_buffered=is_buffered)
    assert ended == Ended(READER_GONE, "")


def test_directories_are_formatted_to_the_end(
    pipe: int, tmp_path: Path, *, is_buffered: bool
) -> None:
    directories = [tmp_path / name for name in ("one", "two", "three")]
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://127.0.0.1:0\ncontroller.quorum.bootstrap.servers=127.0.0.1:1\n"
        f"log.dirs={','.join(map(str, directories))}\n"
    )
    arguments = ["storage", "format", "-c", str(config), "-t", DIRECTORY_ID, "--standalone"]
    # The work is done; unbuffered, nothing is left at the end that could not be written.
    done = READER_GONE if is_buffered else 0
    assert run(pipe, arguments, is_buffered=is_buffered) == Ended(done, "")
    assert all((directory / "meta.properties").exists() for directory in directories)
    assert run(pipe, ["storage", "info", "-c", str(config)], is_buffered=is_buffered) == Ended(
        READER_GONE, ""
    )


def test_a_question_to_a_cluster_ends_quietly(pipe: int, *, is_buffered: bool) -> None:
    with Cluster() as cluster:
        for what in ("--status", "--replication"):
            ask = ["quorum", "--bootstrap-server", cluster.bootstrap_servers, "describe", what]
            assert run(pipe, ask, is_buffered=is_buffered) == Ended(READER_GONE, "")


def test_complaints_without_a_reader_are_not_complained_of(pipe: int) -> None:
    for arguments in (["server", "/nowhere"], ["dump-log", "--files", "/nowhere"]):
        done = subprocess.run(
            [*KVORUM, *arguments], stdout=pipe, stderr=pipe, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == READER_GONE


def created(address: str) -> list[int]:
    """Create a topic as soon as a node listens there."""
    return wait_for(
        lambda: create(address, "made"),
        f"somebody listens at {address}",
        not_yet=(ConnectionRefusedError,),
    )


def test_a_cluster_goes_on_serving(tmp_path: Path, pipe: int, *, is_buffered: bool) -> None:
    """`kvorum dev --json | head -1`, and one whose reader was gone before its first line."""
    command = [*KVORUM, "dev", "--controllers", "1", "--json", "--data", str(tmp_path)]
    settings = environment(is_buffered=is_buffered)
    with stopped(
        subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, env=settings)
    ) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["bootstrap_servers"]
        process.stdout.close()
        assert created(address) == [ErrorCode.NONE]
    assert process.returncode == 0
    with (
        tempfile.TemporaryFile() as errors,
        stopped(subprocess.Popen(command, stdout=pipe, stderr=errors, env=settings)) as process,
    ):
        assert created(address) == [ErrorCode.TOPIC_ALREADY_EXISTS]
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == (READER_GONE if is_buffered else 0)
        errors.seek(0)
        assert errors.read() == b""


@contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Generator[subprocess.Popen[bytes]]:
    """Have a process stop at the end, however that comes."""
    with process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def test_seeds_without_a_reader_are_not_run(pipe: int) -> None:
    """A thousand seeds take many minutes; the first line that cannot be written ends them."""
    many = "simulate --only quorum --seed 1 --seeds 1000 --jobs 2 --duration 1"
    assert run(pipe, many.split(), is_buffered=False) == Ended(READER_GONE, "")


def test_a_lost_connection_is_not_a_lost_reader(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A BrokenPipeError of another pipe or socket is reported like any other failure."""

    def fail(*_: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("kvorum.cli.dump_log.run", fail)
    assert main(["dump-log", "--files", "any"]) == 1
    assert "kvorum dump-log: BrokenPipeError: [Errno 32] Broken pipe" in capfd.readouterr().err

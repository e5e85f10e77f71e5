"""Commands in processes of their own: the cluster of ``dev``, and readers that have gone.

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
from tests.support.node_process import KVORUM, NodeProcess
from tests.support.ports import free_ports
from tests.support.topics import create
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.cli import main
from kvorum.cli.broken_pipe import READER_GONE
from kvorum.cli.dev_status import status_line
from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.embedded.cluster import EmbeddedCluster
from kvorum.node.embedded.node import ClusterSize, Place, prepare_nodes
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode

DEV = [*KVORUM, "dev", "--json"]
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


def run_dev(*arguments: str) -> tuple[dict[str, object], list[int]]:
    """Run it until it answers, make a topic, stop it; return what it said and the topic's error."""
    with NodeProcess([*DEV, *arguments], ready="bootstrap_servers") as process:
        (line,) = process.lines()
        facts: dict[str, object] = json.loads(line)
        codes = create(str(facts["bootstrap_servers"]).split(",")[-1], "made")
        process.send(signal.SIGINT)
        ended = process.wait()
    assert (ended.exit_code, ended.lines) == (0, (line,))
    return facts, codes


@pytest.mark.parametrize(
    ("size", "node_ids"),
    [
        ([], [1, 2, 3, 101]),
        (["--controllers", "1"], [1]),
        (["--controllers", "1", "--brokers", "2"], [1, 101, 102]),
    ],
    ids=["default", "one node", "two brokers"],
)
def test_it_tells_where_it_is_and_comes_back_on_its_data(
    tmp_path: Path, size: list[str], node_ids: list[int]
) -> None:
    facts, codes = run_dev("--port", "0", "--data", str(tmp_path), *size)
    assert facts["data"] == str(tmp_path)
    assert facts["node_ids"] == node_ids
    assert codes == [ErrorCode.NONE]
    again, codes = run_dev("--data", str(tmp_path))
    assert again == facts
    assert codes == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert list(tmp_path.rglob(".kafka_cleanshutdown"))


def test_the_data_of_another_number_of_controllers_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    EmbeddedCluster(tmp_path, size=ClusterSize(controllers=3, brokers=1)).discard()
    assert main(["dev", "--controllers", "5", "--data", str(tmp_path)]) == 2
    assert f"the data in {tmp_path} is of a cluster with 3 controller(s)" in capsys.readouterr().err


def test_the_security_of_existing_data_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ClusterSize(controllers=1, brokers=1)
    EmbeddedCluster(tmp_path, size=size, security=SecurityMode.TLS).discard()
    assert main(["dev", "--data", str(tmp_path), "--security", "scram"]) == 2
    assert "dev: --security scram: the data in " in capsys.readouterr().err


def test_a_start_that_was_interrupted_is_taken_up_with_the_same_voters(tmp_path: Path) -> None:
    size = ClusterSize(controllers=3, brokers=1)
    EmbeddedCluster(tmp_path, size=size).discard()
    before = _metadata(tmp_path)
    for file in sorted((tmp_path / "controller-3").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert _metadata(tmp_path) != before
    EmbeddedCluster(tmp_path, size=size).discard()
    assert _metadata(tmp_path) == before


def _metadata(folder: Path) -> dict[str, set[str]]:
    """Return who each directory says it is of."""
    return {
        file.parent.parent.name: {
            line for line in file.read_text().splitlines() if not line.startswith("#")
        }
        for file in folder.rglob("meta.properties")
    }


def test_of_a_pair_of_nodes_only_the_first_broker_gets_the_port_asked_for(tmp_path: Path) -> None:
    places = [
        Place(
            node_id=node_id,
            folder=tmp_path / str(node_id),
            is_controller=node_id == 1,
            is_broker=True,
        )
        for node_id in (1, 2)
    ]
    nodes = prepare_nodes(tmp_path, places, broker_port=0)
    ports = [embedded.broker_port for embedded in nodes.values()]
    for embedded in nodes.values():
        embedded.node.discard()
    again = prepare_nodes(tmp_path, places, broker_port=ports[0])
    for embedded in again.values():
        embedded.node.discard()
    assert [embedded.broker_port for embedded in again.values()] == ports


async def test_the_status_is_that_of_the_leader(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, size=ClusterSize(controllers=3, brokers=0))
    await cluster.start()
    try:
        line = status_line(cluster, uptime_seconds=61).plain
        assert f"up 1:01   leader {cluster.leader_id} of 3, epoch " in line
        assert "topics 0, partitions 0" in line
    finally:
        await cluster.stop()


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


@pytest.fixture
def full() -> Iterator[int]:
    """Yield a file on a disk without space."""
    file = os.open("/dev/full", os.O_WRONLY)
    yield file
    os.close(file)


READERS = {
    "check": ["log", "check"],
    "decode": ["log", "decode"],
    "image": ["log", "image"],
    "dump": ["dump-log", "--cluster-metadata-decoder", "--files"],
}


@pytest.mark.parametrize("command", READERS.values(), ids=READERS)
def test_a_full_disk_for_the_output_is_not_an_error_of_the_files(
    golden_sets: Path, full: int, command: list[str], *, is_buffered: bool
) -> None:
    controller = golden_sets / "dynamic-4.3.1" / "metadata" / "controller-1"
    log = controller / "__cluster_metadata-0" / "00000000000000000000.log"
    ended = run(full, [*command, str(log)], is_buffered=is_buffered)
    problem = "the output cannot be written: No space left on device"
    assert ended == Ended(1, f"kvorum {command[0]}: {problem}\n")


def test_a_full_disk_for_the_output_of_any_command_is_no_defect(
    full: int, *, is_buffered: bool
) -> None:
    ended = run(full, ["storage", "version-mapping"], is_buffered=is_buffered)
    assert ended.exit_code == 1
    assert ended.stderr.endswith(": No space left on device\n")
    assert ended.stderr.count("\n") == 1
    assert "defect" not in ended.stderr


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
    command = [*KVORUM, "dev", "--controllers", "1", "--json", "--data"]
    settings = environment(is_buffered=is_buffered)
    with stopped(
        subprocess.Popen(
            [*command, str(tmp_path / "read"), "--port", "0"], stdout=subprocess.PIPE, env=settings
        )
    ) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["bootstrap_servers"]
        process.stdout.close()
        assert created(address) == [ErrorCode.NONE]
    assert process.returncode == 0
    (port,) = free_ports(1)
    with (
        tempfile.TemporaryFile() as errors,
        stopped(
            subprocess.Popen(
                [*command, str(tmp_path / "never read"), "--port", str(port)],
                stdout=pipe,
                stderr=errors,
                env=settings,
            )
        ) as process,
    ):
        assert created(f"127.0.0.1:{port}") == [ErrorCode.NONE]
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

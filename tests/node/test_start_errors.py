"""A node that cannot start says why in a line; whatever fails, all is closed in order."""

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest
from tests.node.embedded_cluster import prepare_node, running_node

from kvorum.cli import FAILED, WRONG_USAGE, main
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.node.kafka_raft_server import KafkaRaftServer, ServerClosing, ServerFault
from kvorum.node.serving.socket_server import bind
from kvorum.storage.errors import StorageError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.small_files.directory_lock import lock_directory

META = Path("data") / "meta.properties"


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The folder of a formatted node that ran once."""
    asyncio.run(run_once(tmp_path))
    return tmp_path


async def run_once(folder: Path) -> None:
    async with running_node(folder):
        pass


class Serve(Protocol):
    """Runs ``kvorum server``, which has to fail with 1; returns the last line."""

    def __call__(self, folder: Path, *overrides: str) -> str: ...


@pytest.fixture
def serve(capsys: pytest.CaptureFixture[str]) -> Serve:
    def run(folder: Path, *overrides: str) -> str:
        words = ["server", str(folder / "server.properties")]
        for override in overrides:
            words += ["--override", override]
        assert main(words) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err.splitlines()[-1]

    return run


def rewrite(file: Path, changes: Mapping[str, str]) -> None:
    kept = [line for line in file.read_text().splitlines() if line.partition("=")[0] not in changes]
    file.write_text("\n".join([*kept, *(f"{key}={value}" for key, value in changes.items())]))


@pytest.mark.parametrize("name", ["PLAINTEXT", "CONTROLLER"])
def test_a_taken_port(stopped: Path, serve: Serve, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ports = {"PLAINTEXT": 0, "CONTROLLER": 0, name: port}
        listeners = ",".join(f"{one}://127.0.0.1:{number}" for one, number in ports.items())
        line = serve(stopped, f"listeners={listeners}")
    assert line == (
        f"kvorum server: Cannot listen on {name}://127.0.0.1:{port}: port {port} is taken by "
        "another process. Stop it or change 'listeners'"
    )


def test_a_directory_that_is_not_formatted(stopped: Path, serve: Serve) -> None:
    line = serve(stopped, f"log.dirs={stopped / 'elsewhere'}")
    assert f"No `meta.properties` found in {stopped / 'elsewhere'}" in line
    assert "kvorum storage format" in line
    assert not (stopped / "elsewhere").exists()


def test_directories_of_two_clusters(stopped: Path, serve: Serve) -> None:
    other = stopped / "other"
    other.mkdir()
    (other / "meta.properties").write_text((stopped / META).read_text())
    rewrite(
        other / "meta.properties",
        {"cluster.id": "AAAAAAAAAAAAAAAAAAAAAA", "directory.id": "PSaXcBIqX4NWw6Oxza-UhT"},
    )
    assert "Invalid cluster.id in:" in serve(stopped, f"log.dirs={stopped / 'data'},{other}")


def test_a_directory_in_use(stopped: Path, serve: Serve) -> None:
    lock = lock_directory(stopped / "data", RealFileSystem())
    try:
        line = serve(stopped)
    finally:
        lock.release()
    assert f"Failed to acquire lock on file .lock in {stopped / 'data'}" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read(stopped: Path, serve: Serve) -> None:
    (stopped / "data").chmod(0)
    try:
        line = serve(stopped)
    finally:
        (stopped / "data").chmod(0o755)
    assert str(stopped / "data") in line


def test_a_log_directory_that_is_a_file(stopped: Path, serve: Serve) -> None:
    file = stopped / "file"
    file.write_text("")
    assert str(file) in serve(stopped, f"log.dirs={file}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "node ID not found"),
        ("version=7\n", "version"),
        ("version=1\nnode.id=1\n", "cluster"),
        ("version=1\nnode.id=one\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n", "node.id"),
        ("\0\xff\x80 no properties at all \\u12", "meta.properties"),
    ],
)
def test_damaged_identity(stopped: Path, serve: Serve, text: str, words: str) -> None:
    (stopped / META).write_text(text, encoding="latin-1")
    line = serve(stopped)
    assert words in line
    assert str(stopped / "data") in line


def test_a_damaged_log_is_never_taken_for_an_empty_one(stopped: Path, serve: Serve) -> None:
    log = stopped / "data" / "__cluster_metadata-0" / "00000000000000000000.log"
    data = bytearray(log.read_bytes())
    data[100] ^= 0xFF
    log.write_bytes(data)
    assert str(log) in serve(stopped)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("node.id=none", "Invalid value none"),
        ("process.roles=observer", "process.roles"),
        ("node.id=-1", "node.id"),
        ("node.id=2", "Stored node id 1 doesn't match previous node id 2"),
        (
            "listeners=PLAINTEXT://192.0.2.1:0,CONTROLLER://127.0.0.1:0",
            "the address is not one of this machine",
        ),
        ("listeners=PLAINTEXT://127.0.0.1", "Unable to parse"),
        ("listeners=PLAINTEXT://:70000,CONTROLLER://:0", "70000"),
        ("controller.listener.names=NOBODY", "CONTROLLER"),
        ("broker.session.timeout.ms=9s", "9s"),
        ("metadata.log.segment.bytes=0", "metadata.log.segment.bytes"),
        ("log.dirs=", "log.dirs"),
        ("controller.quorum.bootstrap.servers=", "controller.quorum"),
        ("controller.quorum.bootstrap.servers=nowhere", "nowhere"),
        ("controller.quorum.bootstrap.servers=127.0.0.1:70000", "70000"),
        ("advertised.listeners=PLAINTEXT://127.0.0.1:70000", "70000"),
        ("no-equals-sign", "expected key=value"),
    ],
)
def test_configuration_that_makes_no_sense(
    stopped: Path, serve: Serve, override: str, words: str
) -> None:
    line = serve(stopped, override)
    assert line.startswith("kvorum server: ")
    assert words in line


def test_a_missing_file(tmp_path: Path, serve: Serve) -> None:
    assert serve(tmp_path).endswith("server.properties: No such file or directory")


def test_a_file_that_is_a_directory(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "server.properties").mkdir()
    assert str(tmp_path / "server.properties") in serve(tmp_path)


def test_a_file_of_random_bytes(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "server.properties").write_bytes(bytes(range(256)) * 4)
    assert serve(tmp_path).startswith("kvorum server: ")


def test_a_start_that_failed_leaves_nothing_open(stopped: Path) -> None:
    """The lock and the sockets are free again: the same process may try once more."""

    async def fail_then_start() -> None:
        async with running_node(stopped) as embedded:
            taken = f"PLAINTEXT://127.0.0.1:{embedded.broker_port},CONTROLLER://127.0.0.1:0"
            texts = {**embedded.node.config.texts, "listeners": taken}
            with pytest.raises(Exception, match=r"lock on file"):
                await KafkaRaftServer(NodeConfig.from_properties(texts)).start()
        await run_once(stopped)

    asyncio.run(fail_then_start())


def open_files(folder: Path) -> list[Path]:
    """Return what this process has open below a folder; nothing where there is no /proc."""
    links = Path("/proc/self/fd")
    if not links.exists():
        return []
    opened: list[Path] = []
    for link in links.iterdir():
        with suppress(OSError):
            opened.append(link.readlink())
    return [path for path in opened if path.is_relative_to(folder)]


def test_a_start_that_fails_once_its_log_is_open_closes_it(stopped: Path) -> None:
    async def fail() -> None:
        prepared = prepare_node(stopped).node
        prepared.discard()
        policy = {"create.topic.policy.class.name": "absent.Policy"}
        server = KafkaRaftServer(NodeConfig.from_properties({**prepared.config.texts, **policy}))
        with pytest.raises(NodeStartError, match="absent") as raised:
            await server.start()
        # Files that only the failed start refers to are not closed by chance before this.
        assert raised.tb is not None
        assert open_files(stopped) == []

    asyncio.run(fail())


def test_a_broker_without_controllers_gives_up(stopped: Path, serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        line = serve(
            stopped,
            "process.roles=broker",
            "listeners=PLAINTEXT://127.0.0.1:0",
            "advertised.listeners=PLAINTEXT://127.0.0.1:9",
            f"controller.quorum.bootstrap.servers=127.0.0.1:{silent.getsockname()[1]}",
            "initial.broker.registration.timeout.ms=1000",
        )
    assert "could not register with the active controller within 1000 ms" in line


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


def test_a_port_that_does_not_exist() -> None:
    with pytest.raises(NodeStartError, match="there is no port 99999"):
        bind("PLAINTEXT", "127.0.0.1", 99999)


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


class Log:
    """A replica that cannot be closed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.hands_over: list[bool] = []
        self._error = error

    async def close(self, *, hands_over: bool) -> None:
        self.hands_over.append(hands_over)
        if self._error is not None:
            raise self._error

    def end_waits(self) -> None:
        pass


async def test_the_first_failure_counts() -> None:
    fault = ServerFault()
    waiting = asyncio.create_task(fault.wait())
    await asyncio.sleep(0)
    assert fault.error is None
    assert not waiting.done()
    fault.note(OSError("the disk"))
    fault.note(OSError("what came of it"))
    assert str(await waiting) == "the disk"


@pytest.mark.parametrize("hands_over", [True, False])
async def test_what_started_last_is_closed_first_and_sockets_after_all(hands_over: bool) -> None:
    closed: list[str] = []
    closing = ServerClosing(ServerFault())
    closing.resources.callback(closed.append, "socket")

    async def close(name: str) -> None:
        closed.append(name)

    log = Log()
    closing.roles.push_async_callback(close, "metrics")
    closing.add_log(log)
    closing.roles.push_async_callback(close, "broker")
    await closing.close(hands_over=hands_over)
    await closing.close()
    assert closed == ["broker", "metrics", "socket"]
    assert log.hands_over == [hands_over]


async def test_a_log_that_cannot_be_closed_keeps_nothing_else_open() -> None:
    closed: list[str] = []
    closing = ServerClosing(ServerFault())
    closing.resources.callback(closed.append, "socket")
    closing.add_log(Log(StorageError("no space", file=Path("log"))))
    with pytest.raises(StorageError, match="no space"):
        await closing.close()
    assert closed == ["socket"]


async def test_after_a_failure_it_is_not_news_that_the_log_cannot_be_closed() -> None:
    fault = ServerFault()
    fault.note(OSError("the disk"))
    closing = ServerClosing(fault)
    closing.add_log(Log(StorageError("no space", file=Path("log"))))
    await closing.close()


async def test_a_server_has_its_parts_only_while_it_runs(tmp_path: Path) -> None:
    server = prepare_node(tmp_path, broker_port=0).node
    with pytest.raises(RuntimeError, match="not started"):
        _ = server.shared_server
    with pytest.raises(RuntimeError, match="not started"):
        await server.wait_until_active_controller()
    await server.start()
    assert server.is_running
    assert server.is_active_controller
    assert server.shared_server.raft.is_leader
    await server.stop()
    await server.stop()
    assert not server.is_running
    assert not server.is_active_controller

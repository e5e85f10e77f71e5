"""A kvorum node in a process of its own, started as its users start it."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.clients.kafka_python import KafkaPythonDriver
from tests.interop.kafka.server import NodeFiles, free_ports, write_settings

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 20


class KvorumNode:
    """One combined node: formatted with ``kvorum storage``, run by ``kvorum server``."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        broker_port, controller_port = free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{broker_port}"
        self.controller_servers = f"127.0.0.1:{controller_port}"
        self.files = NodeFiles(folder / "server.properties", folder / "data")
        self.cluster_id = ""
        self._log = folder / "node.log"
        self._process: subprocess.Popen[bytes] | None = None
        write_settings(self.files, broker_port, controller_port, overrides or {})

    def __enter__(self) -> Self:
        self.format()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.stop()

    def format(self) -> None:
        """Give the directory its identity, under a new cluster id."""
        self.cluster_id = run_kvorum("storage", "random-uuid").strip()
        identity = ["--cluster-id", self.cluster_id, "--standalone"]
        run_kvorum("storage", "format", *identity, "--config", str(self.files.properties))

    def start(self) -> None:
        """Start the process and return when it serves its metadata."""
        command = [sys.executable, "-m", "kvorum.cli", "server", str(self.files.properties)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            self._wait_until(lambda: listens(self.bootstrap_servers))
            with KafkaPythonDriver(self.bootstrap_servers) as driver:
                self._wait_until(lambda: bool(driver.describe_cluster().brokers))
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end of a process that was killed and return its exit code."""
        assert self._process is not None
        process, self._process = self._process, None
        return process.wait(STOP_TIMEOUT_S)

    def stop(self) -> int:
        """Stop the node as an operator would and return its exit code."""
        assert self._process is not None
        process, self._process = self._process, None
        process.terminate()
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def _wait_until(self, reached: Callable[[], bool]) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while not reached():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the node does not serve:\n{self._log.read_text()}")
            time.sleep(0.02)


def listens(address: str) -> bool:
    """Whether somebody accepts connections there."""
    host, _, port = address.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex((host, int(port))) == 0


def run_kvorum(*arguments: str) -> str:
    """Run a kvorum command that has to succeed and return what it printed."""
    command = [sys.executable, "-m", "kvorum.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

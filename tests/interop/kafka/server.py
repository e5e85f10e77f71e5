"""A real Kafka node for the tests to compare with."""

import os
import secrets
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.kafka.java import Java
from tests.interop.kafka.tools import ToolRunner

HEAP_MB = 384
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 30
STARTED = "Kafka Server started"
LINES_KEPT = 400
LISTENING_PORTS = range(10_000, 20_000)
"""Embedded nodes take the ports above."""


class DidNotStartError(Exception):
    """The node ended, or hung, before it served; the text holds what it logged last."""


@cache
def _ports_left() -> list[int]:
    """Return the ports that this process may still give out, in a random order.

    Test processes that run side by side share them out, and none is given out twice: a node binds
    its port a while after it was chosen.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    ports = list(LISTENING_PORTS[worker::count])
    secrets.SystemRandom().shuffle(ports)
    return ports


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that nobody listens on now.

    They lie below those that systems give to connections: until a process listens on its port,
    somebody else's connection must not get it.
    """
    found: list[int] = []
    while len(found) < count:
        port = _ports_left().pop()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
    return found


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """Where a node's settings and its data are."""

    properties: Path
    data: Path


def write_settings(
    files: NodeFiles, broker_port: int, controller_port: int, overrides: Mapping[str, str]
) -> None:
    """Write the server.properties of a combined node, real or ours, that listens on loopback."""
    broker, controller = f"127.0.0.1:{broker_port}", f"127.0.0.1:{controller_port}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": controller,
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(files.data),
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": "1",
        "num.network.threads": "2",
        "num.io.threads": "2",
        **overrides,
    }
    files.properties.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    files.properties.write_text(text, encoding="utf-8")


class RealKafka:
    """One combined node of the reference release, formatted and started; use as a context."""

    def __init__(
        self,
        *,
        java: Java,
        tools: ToolRunner,
        folder: Path,
        overrides: Mapping[str, str] | None = None,
        formatted: bool = False,
    ) -> None:
        self._formatted = formatted
        self._java = java
        self._tools = tools
        self._log: deque[str] = deque(maxlen=LINES_KEPT)
        self._serves_or_ended = threading.Event()
        self._serves = False
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        broker_port, controller_port = free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{broker_port}"
        self.controller_servers = f"127.0.0.1:{controller_port}"
        self.files = NodeFiles(folder / "server.properties", folder / "data")
        write_settings(self.files, broker_port, controller_port, overrides or {})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Format the node's directory unless it is, and start it; return when it serves."""
        if not self._formatted:
            self._format()
        command = self._java.command(
            "kafka.Kafka", str(self.files.properties), heap_mb=HEAP_MB, log_level="INFO"
        )
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._process = process
        self._reader = threading.Thread(target=self._read_log, args=[process], daemon=True)
        self._reader.start()
        self._serves_or_ended.wait(START_TIMEOUT_S)
        if not self._serves:
            self.stop()
            raise DidNotStartError("".join(self._log))

    def stop(self) -> None:
        """Stop the node as an operator would, by force when that takes too long."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join()
        if process.stderr is not None:
            process.stderr.close()

    def _format(self) -> None:
        cluster_id = self._tools.run("kafka-storage", "random-uuid").stdout.strip()
        identity = ["--cluster-id", cluster_id, "--standalone"]
        config = ["--config", str(self.files.properties)]
        done = self._tools.run("kafka-storage", "format", *identity, *config)
        if done.exit_code != 0:
            raise DidNotStartError(done.stdout + done.stderr)

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self._log.append(line)
            if STARTED in line:
                self._serves = True
                self._serves_or_ended.set()
        self._serves_or_ended.set()

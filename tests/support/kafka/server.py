"""A real Kafka node for the tests to compare with."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import process_of
from tests.support.node_process import NodeProcess, write_properties
from tests.support.ports import free_ports

HEAP_MB = 384


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
    write_properties(files.properties, settings)


class OnlyNode:
    """A combined node that is a cluster by itself; as a context it is running."""

    process: NodeProcess

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None) -> None:
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
        if self.process.is_launched:
            self.stop()

    def start(self) -> None:
        """Start it and return when it serves."""
        self.process.start()

    def stop(self) -> int:
        """Stop the node as an operator would and return its exit code."""
        return self.process.terminate().exit_code


class RealKafka(OnlyNode):
    """One node of the reference release, formatted when it is started, unless it is already."""

    def __init__(
        self,
        *,
        java: Java,
        tools: ToolRunner,
        folder: Path,
        overrides: Mapping[str, str] | None = None,
        formatted: bool = False,
    ) -> None:
        super().__init__(folder, overrides)
        self._formatted = formatted
        self._tools = tools
        self.process = process_of("kafka", java, self.files.properties, heap_mb=HEAP_MB)

    def start(self) -> None:
        """Format the node's directory unless it is, and start it; return when it serves."""
        if not self._formatted:
            self._format()
        super().start()

    def _format(self) -> None:
        cluster_id = self._tools.run("kafka-storage", "random-uuid").stdout.strip()
        identity = ["--cluster-id", cluster_id, "--standalone"]
        config = ["--config", str(self.files.properties)]
        done = self._tools.run("kafka-storage", "format", *identity, *config)
        assert done.exit_code == 0, done.stdout + done.stderr

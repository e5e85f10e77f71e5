"""A combined node that is a cluster by itself, ours or real Kafka's, in a process of its own."""

import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.clients.kafka_python import KafkaPythonDriver
from tests.support.combined_node import PATIENT, CombinedNode
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import process_of
from tests.support.node_process import NodeProcess, kvorum_server, run_kvorum
from tests.support.ports import free_ports

HEAP_MB = 384
_SMALL = {
    "offsets.topic.replication.factor": "1",
    "num.network.threads": "2",
    "num.io.threads": "2",
}


def files_of_lone_node(folder: Path, overrides: Mapping[str, str]) -> CombinedNode:
    """Return where a node's files are, of which its server.properties is written."""
    broker_port, controller_port = free_ports(2)
    settings = {**PATIENT, **_SMALL, **overrides}
    files = CombinedNode(folder, broker_port, controller_port, settings)
    files.configure()
    return files


class LoneNode:
    """A combined node that is a cluster by itself; as a context it is running."""

    process: NodeProcess

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None) -> None:
        self.files = files_of_lone_node(folder, overrides or {})
        self.bootstrap_servers = self.files.broker
        self.controller_servers = self.files.controller

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


class RealKafka(LoneNode):
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


class KvorumNode(LoneNode):
    """One combined node: formatted with ``kvorum storage``, run by ``kvorum server``."""

    def __init__(self, folder: Path, overrides: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, overrides)
        self.cluster_id = ""
        self.process = kvorum_server(self.files.properties, folder / "node.log")

    def __enter__(self) -> Self:
        self.format()
        return super().__enter__()

    def format(self) -> None:
        """Give the directory its identity, under a new cluster id."""
        self.cluster_id = run_kvorum("storage", "random-uuid").strip()
        self.files.format(self.cluster_id)

    def start(self) -> None:
        """Start the process and return when it serves its metadata."""
        super().start()
        try:
            with KafkaPythonDriver(self.bootstrap_servers) as driver:
                self.process.wait_until(
                    lambda: bool(driver.describe_cluster().brokers), "the broker is unfenced"
                )
        except BaseException:
            self.process.kill()
            raise


def listens(address: str) -> bool:
    """Whether somebody accepts connections there."""
    host, _, port = address.partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        return probe.connect_ex((host, int(port))) == 0

"""A combined node in a folder of its own: formatted once, copied for each test."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.node_process import NodeProcess, kvorum_server, run_kvorum, write_properties
from tests.support.ports import free_ports

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
OTHER_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
LOG_DIRECTORY = "__cluster_metadata-0"
LOG_FILE = f"{LOG_DIRECTORY}/00000000000000000000.log"
# A broker that was killed may register again once its old session has run out. A machine that is
# busy fences such a broker now and then: whoever asks it has to ask again.
QUICK = {"broker.session.timeout.ms": "400", "broker.heartbeat.interval.ms": "100"}
# Kafka's own values: a node that stands still for a moment, on a busy machine, is not fenced.
PATIENT = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}


@dataclass(frozen=True)
class CombinedNode:
    """Where a combined node's files are and where it listens."""

    folder: Path
    broker_port: int
    controller_port: int
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def broker(self) -> str:
        """Where clients ask."""
        return f"127.0.0.1:{self.broker_port}"

    @property
    def controller(self) -> str:
        """Where tools ask the controller."""
        return f"127.0.0.1:{self.controller_port}"

    @property
    def properties(self) -> Path:
        """Its server.properties."""
        return self.folder / "server.properties"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self.folder / "data"

    @property
    def log(self) -> Path:
        """The first segment of its metadata log."""
        return self.data / LOG_FILE

    def settings(self) -> dict[str, str]:
        """Return what its server.properties holds."""
        addresses = f"PLAINTEXT://{self.broker},CONTROLLER://{self.controller}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": self.controller,
            "listeners": addresses,
            "advertised.listeners": addresses,
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "auto.create.topics.enable": "false",
            **QUICK,
            **self.overrides,
        }

    def configure(self, **overrides: str) -> None:
        """Write the server.properties anew, these on top; ``_`` in a key stands for a dot."""
        changed = {key.replace("_", "."): value for key, value in overrides.items()}
        write_properties(self.properties, {**self.settings(), **changed})

    def format(self, cluster_id: str) -> None:
        """Give its directories their identity, as those of a cluster of its own."""
        identity = ["--cluster-id", cluster_id, "--standalone"]
        run_kvorum("storage", "format", *identity, "--config", str(self.properties))

    def process(self) -> NodeProcess:
        """Return a process for it, not started."""
        return kvorum_server(self.properties)

    def copy_to(self, folder: Path, overrides: Mapping[str, str] | None = None) -> "CombinedNode":
        """Return a node at the same addresses with a copy of the data."""
        node = CombinedNode(folder, self.broker_port, self.controller_port, overrides or {})
        folder.mkdir(exist_ok=True)
        shutil.copytree(self.data, node.data)
        node.configure()
        return node


def format_node(
    folder: Path, cluster_id: str = CLUSTER_ID, overrides: Mapping[str, str] | None = None
) -> CombinedNode:
    """Format a new node of a cluster of its own."""
    broker_port, controller_port = free_ports(2)
    node = CombinedNode(folder, broker_port, controller_port, overrides or {})
    folder.mkdir(exist_ok=True)
    node.configure()
    node.format(cluster_id)
    return node

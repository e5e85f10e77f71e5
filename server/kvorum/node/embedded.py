"""A combined node on the loopback interface, for trying and for tests: made ready in one call."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kvorum.node.config import NodeConfig, load_properties
from kvorum.node.format import FormatRequest, format_directories, standalone_voters
from kvorum.node.listener import bind
from kvorum.node.process import Node
from kvorum.storage.files import FileSystem, RealFileSystem, disk_errors, replace_durably
from kvorum.storage.java_properties import store_java_properties
from kvorum.storage.meta_properties import META_PROPERTIES_FILE
from kvorum.wire.uuid_text import random_uuid, uuid_to_text

LOOPBACK = "127.0.0.1"
BROKER_LISTENER = "PLAINTEXT"
CONTROLLER_LISTENER = "CONTROLLER"
NODE_ID = 1
PROPERTIES_FILE = "server.properties"
DATA_DIRECTORY = "data"
REMEDY = "choose another port"
PROPERTIES_COMMENT = "An embedded node of kvorum; its controller has to keep its port."


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedNode:
    """A node that can be started, and where it will be."""

    node: Node
    folder: Path
    broker_port: int
    controller_port: int

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the broker."""
        return f"{LOOPBACK}:{self.broker_port}"

    @property
    def controller_servers(self) -> str:
        """Where tools find the controller."""
        return f"{LOOPBACK}:{self.controller_port}"


def prepare_node(
    folder: Path,
    *,
    broker_port: int | None = None,
    overrides: Mapping[str, str] | None = None,
    files: FileSystem | None = None,
) -> EmbeddedNode:
    """Return a node whose properties and data lie in `folder`; what is there already is used.

    Ports are bound at once; a broker port of 0 is chosen by the system, None is the one used
    before, else chosen. The controller keeps its port, because the log names it. The node, once it
    runs, uses `files`. Raises NodeStartError, ConfigError, StorageError.
    """
    file = folder / PROPERTIES_FILE
    before = load_properties(file) if file.exists() else {}
    ports = _known_ports(before)
    if broker_port is None:
        broker_port = ports.get(BROKER_LISTENER, 0)
    with ExitStack() as undoing:
        broker = bind(BROKER_LISTENER, LOOPBACK, broker_port, remedy=REMEDY)
        undoing.callback(broker.close)
        controller_port = ports.get(CONTROLLER_LISTENER, 0)
        controller = bind(CONTROLLER_LISTENER, LOOPBACK, controller_port, remedy=REMEDY)
        undoing.callback(controller.close)
        properties = {**before, **_properties(folder, broker, controller), **(overrides or {})}
        config = NodeConfig.from_properties(properties)
        if not before:
            _write_properties(file, properties)
        _format(config)
        undoing.pop_all()
    sockets = {BROKER_LISTENER: broker, CONTROLLER_LISTENER: controller}
    return EmbeddedNode(
        node=Node(config, sockets=sockets, files=files),
        folder=folder,
        broker_port=_port(broker),
        controller_port=_port(controller),
    )


def _write_properties(file: Path, properties: Mapping[str, str]) -> None:
    files = RealFileSystem()
    with disk_errors(file.parent, "creating"):
        files.make_directory(file.parent)
    text = store_java_properties(properties.items(), comments=[PROPERTIES_COMMENT])
    replace_durably(files, file, text.encode("latin-1"))


def _properties(folder: Path, broker: socket.socket, controller: socket.socket) -> dict[str, str]:
    broker_address = f"{BROKER_LISTENER}://{LOOPBACK}:{_port(broker)}"
    controller_address = f"{CONTROLLER_LISTENER}://{LOOPBACK}:{_port(controller)}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "listeners": f"{broker_address},{controller_address}",
        "advertised.listeners": f"{broker_address},{controller_address}",
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{_port(controller)}",
        "log.dirs": str(folder / DATA_DIRECTORY),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def _known_ports(properties: Mapping[str, str]) -> dict[str, int]:
    """Return the port of each listener in an earlier properties file."""
    if not properties:
        return {}
    listeners = NodeConfig.from_properties(properties).listeners.bound
    return {listener.name: listener.port for listener in listeners}


def _port(bound: socket.socket) -> int:
    port = bound.getsockname()[1]
    assert isinstance(port, int)
    return port


def _format(config: NodeConfig) -> None:
    """Format the node's directory unless that is done."""
    if (Path(config.metadata_log.directory) / META_PROPERTIES_FILE).exists():
        return
    source = random.SystemRandom()
    request = FormatRequest(
        node_id=config.node_id,
        cluster_id=uuid_to_text(random_uuid(source)),
        directories=config.log_directories,
        metadata_directory=config.metadata_log.directory,
        controller_listener_name=CONTROLLER_LISTENER,
        has_dynamic_quorum=True,
        initial_controllers=standalone_voters(config, random_source=source),
    )
    format_directories(
        request,
        files=RealFileSystem(),
        random_source=source,
        now=datetime.now(UTC),
        report=lambda _: None,
    )

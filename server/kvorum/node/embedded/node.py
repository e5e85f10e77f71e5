"""Nodes on the loopback interface, for experiments and tests, prepared in one call.

A cluster of one controller and one broker is one combined node, whose files are directly in the
cluster's folder. In any other cluster each node has one role and a folder of its own below it.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from kvorum.metadata.address import Address
from kvorum.node.config import NodeConfig, load_properties
from kvorum.node.embedded.identity import (
    ClusterIdentity,
    load_identity,
    new_identity,
    store_identity,
)
from kvorum.node.embedded.listeners import (
    CONTROLLER_LISTENER,
    INTERNAL_LISTENER,
    LOOPBACK,
    ON_LOOPBACK,
    ClientListener,
)
from kvorum.node.endpoints import port_of
from kvorum.node.errors import NodeStartError
from kvorum.node.format import FormatRequest, format_directories
from kvorum.node.kafka_raft_server import KafkaRaftServer
from kvorum.node.serving.socket_server import bind
from kvorum.node.sockets import close_listening
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.files import FileSystem, RealFileSystem, disk_errors, replace_durably
from kvorum.storage.small_files.java_properties import store_java_properties
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE

if TYPE_CHECKING:
    from kvorum.node.embedded.client_security.secured_listener import SecuredListener

LISTENING_PORTS: Final = range(20_000, 32_000)
"""They lie below the ports that systems give to connections: a stopped node finds its port free."""
ATTEMPTS: Final = 50
PROPERTIES_FILE: Final = "server.properties"
DATA_DIRECTORY: Final = "data"
PROPERTIES_COMMENT: Final = "An embedded node of kvorum; its controller has to keep its port."
FIRST_BROKER_ID: Final = 101
"""The first id of brokers in clusters without combined nodes; controllers begin with 1."""
CONTROLLERS_MAX: Final = FIRST_BROKER_ID - 1
"""The largest number of controllers: another one would have the id of a broker."""
BROKERS_MAX: Final = 1000
"""The largest number of brokers; a process has not the memory and the open files for more."""
HEARTBEAT_MS: Final = 500
"""The time between two heartbeats of a member of a consumer group."""
ELECTION_STEP_MS: Final = 100
"""The time that each controller waits longer than the one before: the first election is quick."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_DISKS: Mapping[int, FileSystem] = MappingProxyType({})


def bind_anywhere(name: str, host: ClientListener = ON_LOOPBACK) -> socket.socket:
    """Return a socket for the listener called `name`, bound to a free port of its address.

    The port is one of `LISTENING_PORTS`, or one of the system's choice where those are taken.
    """
    for port in random.SystemRandom().sample(LISTENING_PORTS, ATTEMPTS):
        with suppress(NodeStartError):
            return bind(name, host.listens_at, port, takes_lingering=False)
    return bind(name, host.listens_at, 0, remedy=host.remedy)


class WrongSizeError(ValueError):
    """The size is invalid, or the data is of a cluster with another number of controllers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSize:
    """The number of nodes of each role.

    Raises WrongSizeError for an invalid one, and TypeError for what is not a whole number.
    """

    controllers: int
    brokers: int

    def __post_init__(self) -> None:
        _check_count("controllers", self.controllers)
        _check_count("brokers", self.brokers)
        if self.controllers < 1 or self.brokers < 0:
            raise WrongSizeError("a cluster has at least 1 controller, and 0 brokers or more")
        if self.controllers > CONTROLLERS_MAX or self.brokers > BROKERS_MAX:
            raise WrongSizeError(
                f"a process has at most {CONTROLLERS_MAX} controllers and {BROKERS_MAX} brokers"
            )

    @property
    def is_combined(self) -> bool:
        """Whether one node has both roles."""
        return self.controllers == self.brokers == 1


def _check_count(name: str, count: object) -> None:
    if not isinstance(count, int):
        raise TypeError(f"{name} is {count!r}: a whole number is needed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder of one node, its id and its roles."""

    node_id: int
    folder: Path
    is_controller: bool
    is_broker: bool

    @property
    def properties(self) -> Path:
        """The file with the node's settings."""
        return self.folder / PROPERTIES_FILE


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedNode:
    """A node that can be started, and its ports; a port is None without the role.

    Other brokers, and the cluster itself, connect to the internal port.
    """

    node: KafkaRaftServer
    place: Place
    broker_port: int | None
    internal_port: int | None
    controller_port: int | None
    clients: ClientListener = ON_LOOPBACK

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap.servers of the broker; empty without the role."""
        host = self.clients.advertised
        return "" if self.broker_port is None else str(Address(host, self.broker_port))

    @property
    def internal_address(self) -> Address | None:
        """The address of the listener for other brokers, from this machine; None without one."""
        if self.internal_port is None:
            return None
        is_for_clients_too = self.internal_port == self.broker_port
        return Address(self.clients.nearest if is_for_clients_too else LOOPBACK, self.internal_port)

    @property
    def controller_servers(self) -> str:
        """The bootstrap.controllers of the controller; empty without the role."""
        port = self.controller_port
        return "" if port is None else str(Address(LOOPBACK, port))


def size_of(folder: Path) -> ClusterSize | None:
    """Return the size of the cluster whose data a folder contains; None if it contains none."""
    identity = load_identity(folder)
    if identity is not None:
        return ClusterSize(controllers=len(identity.voters), brokers=identity.broker_count)
    is_one_node = (folder / PROPERTIES_FILE).exists()
    return ClusterSize(controllers=1, brokers=1) if is_one_node else None


def places_of(folder: Path, size: ClusterSize) -> tuple[Place, ...]:
    """Return the places of all nodes of a cluster, controllers first."""
    if size.is_combined:
        return (Place(node_id=1, folder=folder, is_controller=True, is_broker=True),)
    controllers = [
        Place(
            node_id=node_id,
            folder=folder / f"controller-{node_id}",
            is_controller=True,
            is_broker=False,
        )
        for node_id in range(1, size.controllers + 1)
    ]
    brokers = [
        Place(
            node_id=node_id,
            folder=folder / f"broker-{node_id}",
            is_controller=False,
            is_broker=True,
        )
        for node_id in range(FIRST_BROKER_ID, FIRST_BROKER_ID + size.brokers)
    ]
    return (*controllers, *brokers)


def prepare_nodes(
    folder: Path,
    places: list[Place],
    *,
    broker_port: int | None = None,
    clients: ClientListener = ON_LOOPBACK,
    overrides: Mapping[str, str] = _NOTHING,
    files: FileSystem | None = None,
    disks: Mapping[int, FileSystem] = _NO_DISKS,
    open_files: OpenFiles | None = None,
) -> dict[int, EmbeddedNode]:
    """Return nodes of the cluster in `folder`; existing data is used.

    For a new cluster, `places` must be those of all nodes. Ports are bound at once. The broker port
    is that of the first broker: 0 chooses a free one, None takes the port used before, if there is
    one. Controllers keep their ports, because the log contains them. `disks` are the files of nodes
    that do not use `files`.
    Raises NodeStartError, ConfigError, StorageError.
    """
    identity = load_identity(folder)
    with ExitStack() as undoing:
        bound: dict[int, dict[str, socket.socket]] = {}
        for place in places:
            ports = _ports(place, identity, broker_port, clients)
            bound[place.node_id] = _bind(place, ports, clients, undoing)
            broker_port = None if place.is_broker else broker_port
        if identity is None and not all(_is_formatted(place) for place in places):
            identity = _store_new_identity(folder, places, bound, clients)
        nodes = {
            place.node_id: _make(
                place,
                identity,
                bound[place.node_id],
                overrides,
                files=disks.get(place.node_id, files),
                open_files=open_files,
                clients=clients,
            )
            for place in places
        }
        undoing.pop_all()
    return nodes


def _listeners(place: Place, clients: ClientListener) -> tuple[str, ...]:
    of_broker = clients.broker_listeners if place.is_broker else ()
    return (*of_broker, CONTROLLER_LISTENER) if place.is_controller else of_broker


def _ports(
    place: Place,
    identity: ClusterIdentity | None,
    broker_port: int | None,
    clients: ClientListener,
) -> dict[str, int]:
    """Return the ports that a node must have, by listener; 0 stands for any."""
    ports = _known_ports(place)
    if identity is not None and place.node_id in identity.voters:
        ports.setdefault(CONTROLLER_LISTENER, identity.voters[place.node_id].port)
    if broker_port is not None:
        ports[clients.name] = broker_port
    return ports


def _bind(
    place: Place, ports: Mapping[str, int], clients: ClientListener, undoing: ExitStack
) -> dict[str, socket.socket]:
    sockets: dict[str, socket.socket] = {}
    for name in _listeners(place, clients):
        host = clients if name == clients.name else ON_LOOPBACK
        if port := ports.get(name, 0):
            sockets[name] = bind(name, host.listens_at, port, remedy=host.remedy)
        else:
            sockets[name] = bind_anywhere(name, host)
        undoing.callback(close_listening, sockets[name])
    return sockets


def _known_ports(place: Place) -> dict[str, int]:
    """Return the port of each listener in an earlier properties file."""
    if not place.properties.exists():
        return {}
    listeners = NodeConfig.from_properties(load_properties(place.properties)).listeners.bound
    return {listener.name: listener.port for listener in listeners}


def _store_new_identity(
    folder: Path,
    places: list[Place],
    bound: Mapping[int, Mapping[str, socket.socket]],
    clients: ClientListener,
) -> ClusterIdentity:
    addresses = {
        place.node_id: Address(LOOPBACK, port_of(bound[place.node_id][CONTROLLER_LISTENER]))
        for place in places
        if place.is_controller
    }
    identity = new_identity(
        addresses,
        broker_count=sum(place.is_broker for place in places),
        security=None if clients.security is None else clients.security.mode,
    )
    store_identity(folder, identity)
    return identity


def _make(
    place: Place,
    identity: ClusterIdentity | None,
    sockets: Mapping[str, socket.socket],
    overrides: Mapping[str, str],
    *,
    files: FileSystem | None,
    open_files: OpenFiles | None,
    clients: ClientListener,
) -> EmbeddedNode:
    ports = {name: port_of(bound) for name, bound in sockets.items()}
    before = load_properties(place.properties) if place.properties.exists() else {}
    properties = {**before, **_properties(place, identity, ports, clients), **overrides}
    config = NodeConfig.from_properties(properties)
    if not before:
        _write_properties(place.properties, properties)
    if identity is not None and not _is_formatted(place):
        _format(config, place, identity, clients)
    return EmbeddedNode(
        node=KafkaRaftServer(config, sockets=sockets, files=files, open_files=open_files),
        place=place,
        broker_port=ports.get(clients.name),
        internal_port=ports.get(clients.internal_name),
        controller_port=ports.get(CONTROLLER_LISTENER),
        clients=clients,
    )


def _properties(
    place: Place,
    identity: ClusterIdentity | None,
    ports: Mapping[str, int],
    clients: ClientListener,
) -> dict[str, str]:
    def addresses(host: str) -> str:
        return ",".join(
            f"{name}://{Address(host if name == clients.name else LOOPBACK, port)}"
            for name, port in ports.items()
        )

    roles = (("broker", place.is_broker), ("controller", place.is_controller))
    properties = {
        "process.roles": ",".join(role for role, has_it in roles if has_it),
        "node.id": str(place.node_id),
        "listeners": addresses(clients.listens_at),
        "advertised.listeners": addresses(clients.advertised),
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": _bootstrap_servers(identity, ports),
        "log.dirs": str(place.folder / DATA_DIRECTORY),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        # As Kafka's own server.properties has it: a test's group does not wait for more members.
        "group.initial.rebalance.delay.ms": "0",
        # Members of consumer groups hear of a new target with a heartbeat: soon.
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
        "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
        "group.share.assignment.interval.ms": "0",
        "group.share.heartbeat.interval.ms": str(HEARTBEAT_MS),
        "group.share.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    if clients.security is not None:
        properties |= _secured(place, clients, clients.security)
    if place.is_controller and not place.is_broker:
        wait_ms = str(ELECTION_STEP_MS * place.node_id)
        properties["controller.quorum.election.timeout.ms"] = wait_ms
        properties["controller.quorum.election.backoff.max.ms"] = wait_ms
    return properties


def _secured(place: Place, clients: ClientListener, security: SecuredListener) -> dict[str, str]:
    """Return the properties of a node whose clients have a listener with security."""
    pairs = (f"{name}:{protocol}" for name, protocol in clients.protocols.items())
    properties = {"listener.security.protocol.map": ",".join(pairs)}
    if place.is_broker:
        properties["inter.broker.listener.name"] = INTERNAL_LISTENER
        properties |= security.properties
    return properties


def _bootstrap_servers(identity: ClusterIdentity | None, ports: Mapping[str, int]) -> str:
    if identity is None:
        return str(Address(LOOPBACK, ports[CONTROLLER_LISTENER]))
    return ",".join(str(Address(one.host, one.port)) for one in identity.voters.values())


def _write_properties(file: Path, properties: Mapping[str, str]) -> None:
    files = RealFileSystem()
    with disk_errors(file.parent, "creating"):
        files.make_directory(file.parent)
    text = store_java_properties(properties.items(), comments=[PROPERTIES_COMMENT])
    replace_durably(files, file, text.encode("latin-1"))


def _is_formatted(place: Place) -> bool:
    return (place.folder / DATA_DIRECTORY / META_PROPERTIES_FILE).exists()


def _format(
    config: NodeConfig, place: Place, identity: ClusterIdentity, clients: ClientListener
) -> None:
    request = FormatRequest(
        node_id=config.node_id,
        cluster_id=identity.cluster_id,
        directories=config.log_directories,
        metadata_directory=config.metadata_log.directory,
        controller_listener_name=CONTROLLER_LISTENER,
        is_controller=place.is_controller,
        has_dynamic_quorum=True,
        initial_controllers=identity.voters if place.is_controller else None,
        scram_arguments=() if clients.security is None else clients.security.scram_arguments,
    )
    format_directories(
        request,
        files=RealFileSystem(),
        random_source=random.SystemRandom(),
        now=datetime.now(UTC),
        report=lambda _: None,
    )

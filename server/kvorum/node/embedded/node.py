"""Nodes on the loopback interface, for experiments and tests, prepared in one call.

A cluster of one controller and one broker is one combined node, whose files are directly in the
cluster's folder. In any other cluster each node has one role and a folder of its own below it.
"""

import random
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kvorum.metadata.address import Address
from kvorum.node.config import NodeConfig, load_properties
from kvorum.node.endpoints import port_of
from kvorum.node.errors import NodeStartError
from kvorum.node.format import FormatRequest, format_directories
from kvorum.node.format.dynamic_voters import DynamicVoter, parse_dynamic_voters, voters_by_id
from kvorum.node.kafka_raft_server import KafkaRaftServer
from kvorum.node.serving.socket_server import bind
from kvorum.node.sockets import close_listening
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.files import FileSystem, RealFileSystem, disk_errors, replace_durably
from kvorum.storage.small_files.java_properties import store_java_properties
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE
from kvorum.wire.uuid_text import random_uuid, uuid_to_text

IDENTITY_FILE = "cluster.properties"
_CLUSTER_ID = "cluster.id"
_CONTROLLERS = "initial.controllers"
_BROKERS = "brokers"
_COMMENT = "A cluster of embedded nodes of kvorum; each node's own settings are in its folder."
LOOPBACK: Final = "127.0.0.1"
EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a user may ask for it
LISTENING_PORTS: Final = range(20_000, 32_000)
"""They lie below the ports that systems give to connections: a stopped node finds its port free."""
ATTEMPTS: Final = 50
BROKER_LISTENER: Final = "PLAINTEXT"
CONTROLLER_LISTENER: Final = "CONTROLLER"
PROPERTIES_FILE: Final = "server.properties"
DATA_DIRECTORY: Final = "data"
REMEDY: Final = "choose another port"
PROPERTIES_COMMENT: Final = "An embedded node of kvorum; its controller has to keep its port."
FIRST_BROKER_ID: Final = 101
"""The first id of brokers in clusters without combined nodes; controllers begin with 1."""
ELECTION_STEP_MS: Final = 100
"""The time that each controller waits longer than the one before: the first election is quick."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_DISKS: Mapping[int, FileSystem] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterIdentity:
    """A cluster's id, its first voters, and its number of brokers.

    An interrupted first start is repeated with the same identity: no two controllers may be
    formatted with different voters.
    """

    cluster_id: str
    voters: Mapping[int, DynamicVoter]
    broker_count: int


def new_identity(controllers: Mapping[int, Address], *, broker_count: int) -> ClusterIdentity:
    """Return an identity with random ids for a cluster whose controllers have these addresses."""
    source = random.SystemRandom()
    voters = voters_by_id(
        DynamicVoter(node_id, address.host, address.port, random_uuid(source))
        for node_id, address in controllers.items()
    )
    cluster_id = uuid_to_text(random_uuid(source))
    return ClusterIdentity(cluster_id=cluster_id, voters=voters, broker_count=broker_count)


def load_identity(folder: Path) -> ClusterIdentity | None:
    """Return the identity of the cluster in a folder, None without one yet.

    Raises NodeStartError if the file is damaged.
    """
    file = folder / IDENTITY_FILE
    if not file.exists():
        return None
    properties = load_properties(file)
    try:
        return ClusterIdentity(
            cluster_id=properties[_CLUSTER_ID],
            voters=parse_dynamic_voters(properties[_CONTROLLERS]),
            broker_count=int(properties[_BROKERS]),
        )
    except (KeyError, ValueError) as error:
        raise NodeStartError(f"{file} does not describe a cluster: {error}") from error


def store_identity(folder: Path, identity: ClusterIdentity) -> None:
    """Write the identity durably. Raises StorageError."""
    properties = {
        _CLUSTER_ID: identity.cluster_id,
        _CONTROLLERS: ",".join(str(voter) for voter in identity.voters.values()),
        _BROKERS: str(identity.broker_count),
    }
    files = RealFileSystem()
    with disk_errors(folder, "creating"):
        files.make_directory(folder)
    text = store_java_properties(properties.items(), comments=[_COMMENT])
    replace_durably(files, folder / IDENTITY_FILE, text.encode("latin-1"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerHost:
    """The address that brokers listen at, and the name by which clients reach them."""

    listens_at: str = LOOPBACK
    advertised: str = LOOPBACK
    remedy: str = REMEDY
    """The advice where an address cannot be had."""

    @property
    def nearest(self) -> str:
        """The address for clients on this machine."""
        return LOOPBACK if self.listens_at == EVERY_ADDRESS else self.listens_at


ON_LOOPBACK: Final = BrokerHost()


def bind_anywhere(name: str, host: BrokerHost = ON_LOOPBACK) -> socket.socket:
    """Return a socket for the listener called `name`, bound to a free port of its address.

    The port is one of `LISTENING_PORTS`, or one of the system's choice where those are taken.
    """
    for port in random.SystemRandom().sample(LISTENING_PORTS, ATTEMPTS):
        with suppress(NodeStartError):
            return bind(name, host.listens_at, port)
    return bind(name, host.listens_at, 0, remedy=host.remedy)


class WrongSizeError(ValueError):
    """The size is invalid, or the data is of a cluster with another number of controllers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSize:
    """The number of nodes of each role; raises WrongSizeError for an invalid one."""

    controllers: int
    brokers: int

    def __post_init__(self) -> None:
        if self.controllers < 1 or self.brokers < 0:
            raise WrongSizeError("a cluster has at least 1 controller, and 0 brokers or more")

    @property
    def is_combined(self) -> bool:
        """Whether one node has both roles."""
        return self.controllers == self.brokers == 1


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

    @property
    def listeners(self) -> tuple[str, ...]:
        """The names of its listeners."""
        names = ((BROKER_LISTENER, self.is_broker), (CONTROLLER_LISTENER, self.is_controller))
        return tuple(name for name, is_there in names if is_there)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedNode:
    """A node that can be started, and its ports; a port is None without the role."""

    node: KafkaRaftServer
    place: Place
    broker_port: int | None
    controller_port: int | None
    broker_host: BrokerHost = ON_LOOPBACK

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap.servers of the broker; empty without the role."""
        host = self.broker_host.advertised
        return "" if self.broker_port is None else f"{host}:{self.broker_port}"

    @property
    def controller_servers(self) -> str:
        """The bootstrap.controllers of the controller; empty without the role."""
        return "" if self.controller_port is None else f"{LOOPBACK}:{self.controller_port}"


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
    broker_host: BrokerHost = ON_LOOPBACK,
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
            ports = _ports(place, identity, broker_port)
            bound[place.node_id] = _bind(place, ports, broker_host, undoing)
            broker_port = None if place.is_broker else broker_port
        if identity is None and not all(_is_formatted(place) for place in places):
            identity = _store_new_identity(folder, places, bound)
        nodes = {
            place.node_id: _make(
                place,
                identity,
                bound[place.node_id],
                overrides,
                files=disks.get(place.node_id, files),
                open_files=open_files,
                broker_host=broker_host,
            )
            for place in places
        }
        undoing.pop_all()
    return nodes


def _ports(
    place: Place, identity: ClusterIdentity | None, broker_port: int | None
) -> dict[str, int]:
    """Return the ports that a node must have, by listener; 0 stands for any."""
    ports = _known_ports(place)
    if identity is not None and place.node_id in identity.voters:
        ports.setdefault(CONTROLLER_LISTENER, identity.voters[place.node_id].port)
    if broker_port is not None:
        ports[BROKER_LISTENER] = broker_port
    return ports


def _bind(
    place: Place, ports: Mapping[str, int], broker_host: BrokerHost, undoing: ExitStack
) -> dict[str, socket.socket]:
    sockets: dict[str, socket.socket] = {}
    for name in place.listeners:
        host = broker_host if name == BROKER_LISTENER else ON_LOOPBACK
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
    folder: Path, places: list[Place], bound: Mapping[int, Mapping[str, socket.socket]]
) -> ClusterIdentity:
    addresses = {
        place.node_id: Address(LOOPBACK, port_of(bound[place.node_id][CONTROLLER_LISTENER]))
        for place in places
        if place.is_controller
    }
    identity = new_identity(addresses, broker_count=sum(place.is_broker for place in places))
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
    broker_host: BrokerHost,
) -> EmbeddedNode:
    ports = {name: port_of(bound) for name, bound in sockets.items()}
    before = load_properties(place.properties) if place.properties.exists() else {}
    properties = {**before, **_properties(place, identity, ports, broker_host), **overrides}
    config = NodeConfig.from_properties(properties)
    if not before:
        _write_properties(place.properties, properties)
    if identity is not None and not _is_formatted(place):
        _format(config, place, identity)
    return EmbeddedNode(
        node=KafkaRaftServer(config, sockets=sockets, files=files, open_files=open_files),
        place=place,
        broker_port=ports.get(BROKER_LISTENER),
        controller_port=ports.get(CONTROLLER_LISTENER),
        broker_host=broker_host,
    )


def _properties(
    place: Place,
    identity: ClusterIdentity | None,
    ports: Mapping[str, int],
    broker_host: BrokerHost,
) -> dict[str, str]:
    def addresses(host: str) -> str:
        return ",".join(
            f"{name}://{host if name == BROKER_LISTENER else LOOPBACK}:{ports[name]}"
            for name in place.listeners
        )

    roles = (("broker", place.is_broker), ("controller", place.is_controller))
    properties = {
        "process.roles": ",".join(role for role, has_it in roles if has_it),
        "node.id": str(place.node_id),
        "listeners": addresses(broker_host.listens_at),
        "advertised.listeners": addresses(broker_host.advertised),
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": _bootstrap_servers(identity, ports),
        "log.dirs": str(place.folder / DATA_DIRECTORY),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        # As Kafka's own server.properties has it: a test's group does not wait for more members.
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    if place.is_controller and not place.is_broker:
        wait_ms = str(ELECTION_STEP_MS * place.node_id)
        properties["controller.quorum.election.timeout.ms"] = wait_ms
        properties["controller.quorum.election.backoff.max.ms"] = wait_ms
    return properties


def _bootstrap_servers(identity: ClusterIdentity | None, ports: Mapping[str, int]) -> str:
    if identity is None:
        return f"{LOOPBACK}:{ports[CONTROLLER_LISTENER]}"
    return ",".join(f"{voter.host}:{voter.port}" for voter in identity.voters.values())


def _write_properties(file: Path, properties: Mapping[str, str]) -> None:
    files = RealFileSystem()
    with disk_errors(file.parent, "creating"):
        files.make_directory(file.parent)
    text = store_java_properties(properties.items(), comments=[PROPERTIES_COMMENT])
    replace_durably(files, file, text.encode("latin-1"))


def _is_formatted(place: Place) -> bool:
    return (place.folder / DATA_DIRECTORY / META_PROPERTIES_FILE).exists()


def _format(config: NodeConfig, place: Place, identity: ClusterIdentity) -> None:
    request = FormatRequest(
        node_id=config.node_id,
        cluster_id=identity.cluster_id,
        directories=config.log_directories,
        metadata_directory=config.metadata_log.directory,
        controller_listener_name=CONTROLLER_LISTENER,
        is_controller=place.is_controller,
        has_dynamic_quorum=True,
        initial_controllers=identity.voters if place.is_controller else None,
    )
    format_directories(
        request,
        files=RealFileSystem(),
        random_source=random.SystemRandom(),
        now=datetime.now(UTC),
        report=lambda _: None,
    )

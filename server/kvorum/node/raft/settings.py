"""The settings of a replica of the metadata log, and its `Identity` from them."""

from dataclasses import dataclass, field
from pathlib import Path

from kvorum.metadata.address import Address
from kvorum.raft import Destination, Endpoint, Identity, ReplicaKey
from kvorum.raft.config import RaftConfig
from kvorum.storage.log.log_config import LogConfig

_FIRST_BOOTSTRAP_ID = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings:
    """The identity of a replica, its directory, and the addresses that it asks first.

    `directory` is that of the partition (`…/__cluster_metadata-0`); it is created if it does not
    exist, and the caller holds the lock of its parent directory. `controller_listener` is the first
    of controller.listener.names, which replicas connect to. `local_listeners` are this node's
    advertised controller listeners, none for a broker-only process. `can_vote` is whether the
    process has the controller role.
    """

    node_id: int
    cluster_id: str
    directory_id: bytes
    directory: Path
    can_vote: bool
    controller_listener: str
    local_listeners: tuple[Endpoint, ...] = ()
    static_voters: tuple[Destination, ...] = ()
    bootstrap_servers: tuple[Address, ...] = ()
    raft: RaftConfig = field(default_factory=RaftConfig)
    log: LogConfig = field(default_factory=LogConfig)


def identity_of(settings: RaftSettings) -> Identity:
    """Return the identity of the replica with these settings."""
    servers = tuple(
        Destination(_FIRST_BOOTSTRAP_ID - index, address.host, address.port)
        for index, address in enumerate(settings.bootstrap_servers)
    )
    static = tuple(one for one in settings.static_voters if one.id != settings.node_id)
    return Identity(
        key=ReplicaKey(settings.node_id, settings.directory_id),
        endpoints=settings.local_listeners,
        listener_name=settings.controller_listener,
        can_vote=settings.can_vote,
        bootstrap=servers or static,
    )

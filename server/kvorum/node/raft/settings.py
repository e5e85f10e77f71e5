"""The settings of a replica of the metadata log."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kvorum.metadata.address import Address
from kvorum.raft import Destination, Endpoint
from kvorum.raft.config import RaftConfig
from kvorum.storage.log.log_config import LogConfig


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

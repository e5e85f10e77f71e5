"""What a replica of the metadata log is configured with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kvorum.raft.config import RaftConfig
from kvorum.storage.log_config import LogConfig


class Clock(Protocol):
    """Where the time comes from."""

    def monotonic_ms(self) -> float:
        """Return milliseconds of a clock that never goes back, for timers."""
        ...

    def wall_ms(self) -> int:
        """Return milliseconds since 1970, for timestamps in files and answers."""
        ...


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StaticVoter:
    """One entry of controller.quorum.voters."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """An advertised controller listener of this node; `name` is in upper case."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftSettings:
    """Who a replica is, where its files are, and whom it asks first.

    `directory` is the partition's own one (`…/__cluster_metadata-0`); it must exist or be makeable,
    and the caller holds the lock of the directory above. `controller_listener` is the first of
    controller.listener.names: the one peers reach each other by. `local_listeners` are this node's
    advertised controller listeners, none for a broker-only process. `can_vote` is whether the
    process has the controller role.
    """

    node_id: int
    cluster_id: str
    directory_id: bytes
    directory: Path
    can_vote: bool
    controller_listener: str
    local_listeners: tuple[ListenerAddress, ...] = ()
    static_voters: tuple[StaticVoter, ...] = ()
    bootstrap_servers: tuple[Address, ...] = ()
    raft: RaftConfig = field(default_factory=RaftConfig)
    log: LogConfig = field(default_factory=LogConfig)

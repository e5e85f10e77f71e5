"""A core of an observer that knows servers to ask, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tests.unit.raft.core_builder import LISTENER, build_core

from kvorum.raft import (
    Destination,
    Endpoint,
    RaftConfig,
    RaftCore,
    ReplicaKey,
)

CONFIG = RaftConfig()
FIRST_PORT = 9000


def endpoints_of(node_id: int) -> tuple[Endpoint, ...]:
    """Return where a node listens; the server with the id -n is node n."""
    return (Endpoint(LISTENER, "host", FIRST_PORT + abs(node_id)),)


def observer(servers: Iterable[int], *, seed: int = 1) -> RaftCore:
    """Return node 9, not started; ids of servers are -2 and below."""
    return build_core(
        ReplicaKey(9, b"\x09" * 16),
        endpoints=endpoints_of(9),
        can_vote=False,
        bootstrap=tuple(Destination(one, "host", FIRST_PORT - one) for one in servers),
        random=Random(seed),
    )

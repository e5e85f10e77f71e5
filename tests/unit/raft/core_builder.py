"""A core made of what a test cares about; everything else is as usual."""

from collections.abc import Iterable
from random import Random

from kvorum.raft import (
    Destination,
    Endpoint,
    Endpoints,
    Identity,
    LogView,
    RaftConfig,
    RaftCore,
    ReplicaKey,
    VoterSet,
    VoterSetHistory,
)

LISTENER = "CONTROLLER"


def build_core(
    key: ReplicaKey,
    *,
    endpoints: Endpoints = (),
    can_vote: bool = True,
    bootstrap: tuple[Destination, ...] = (),
    config: RaftConfig | None = None,
    log: LogView | None = None,
    history: VoterSetHistory | VoterSet | None = None,
    random: Random | None = None,
) -> RaftCore:
    """Return a core that has not been started; without a log, its directory is empty.

    A voter set in place of a history is what the configuration says.
    """
    if not isinstance(history, VoterSetHistory):
        history = VoterSetHistory(static=history or VoterSet())
    return RaftCore(
        Identity(
            key=key,
            endpoints=endpoints,
            listener_name=LISTENER,
            can_vote=can_vote,
            bootstrap=bootstrap,
        ),
        config=config or RaftConfig(),
        log=LogView() if log is None else log,
        history=history,
        random=random or Random(1),
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

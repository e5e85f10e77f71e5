"""A core made of what a test cares about; everything else is as usual."""

from collections.abc import Iterable
from random import Random

from kvorum.raft import (
    BOOTSTRAP_SNAPSHOT_ID,
    Destination,
    Effects,
    Endpoint,
    Endpoints,
    Identity,
    LogView,
    OffsetAndEpoch,
    RaftConfig,
    RaftCore,
    ReplicaKey,
    Voter,
    VoterSet,
    VoterSetHistory,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg

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
EMPTY_LOG = OffsetAndEpoch(0, 0)


def key_of(node_id: int, directory: int | None = None) -> ReplicaKey:
    """Return the key of a node in its usual directory, or in another one."""
    return ReplicaKey(node_id, bytes([node_id if directory is None else directory]) * 16)


def destination_of(node_id: int) -> Destination:
    """Return where a node listens; the server with the id -n is node n."""
    return Destination(node_id, f"host{abs(node_id)}", 9093)


def endpoints_of(node_id: int) -> Endpoints:
    return (Endpoint(LISTENER, f"host{abs(node_id)}", 9093),)


def voters_of(*node_ids: int) -> VoterSet:
    """Return the voters as they are recorded at kraft.version 1."""
    return VoterSet.of(Voter(key_of(i), endpoints_of(i), 0, 1) for i in node_ids)


def static_voters_of(*node_ids: int) -> VoterSet:
    """Return the voters as the configuration gives them."""
    return VoterSet.of(Voter(ReplicaKey(i), endpoints_of(i)) for i in node_ids)


def history_of(voters: VoterSet, log: LogView, kraft_version: int) -> VoterSetHistory:
    """Return what is known of voters that are configured or, from version 1 on, in a snapshot."""
    if kraft_version == 0:
        return VoterSetHistory(static=voters)
    log.snapshots.append(BOOTSTRAP_SNAPSHOT_ID)
    history = VoterSetHistory()
    history.start_from_snapshot(BOOTSTRAP_SNAPSHOT_ID, voters=voters, kraft_version=kraft_version)
    return history


def observer(servers: Iterable[int], *, seed: int = 1) -> RaftCore:
    """Return node 9, not started; ids of servers are -2 and below."""
    return build_core(
        key_of(9),
        endpoints=endpoints_of(9),
        can_vote=False,
        bootstrap=tuple(map(destination_of, servers)),
        random=Random(seed),
    )


def vote_request(
    candidate_id: int,
    *,
    epoch: int,
    log_end: OffsetAndEpoch = EMPTY_LOG,
    voter: ReplicaKey | None = None,
    is_pre_vote: bool = False,
) -> msg.VoteRequest:
    return msg.VoteRequest(epoch, key_of(candidate_id), voter, log_end, is_pre_vote)


def sends_in(effects: Effects) -> list[fx.Send]:
    told = (*effects.at_once, *effects.after_write)
    return [effect for effect in told if isinstance(effect, fx.Send)]

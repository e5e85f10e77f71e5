"""The quorum as its leader knows it, described for the controller."""

from kvorum.controller.quorum_description import NO_QUORUM, QuorumDescription, ReplicaState
from kvorum.metadata.voter_key import VoterKey
from kvorum.raft import RaftCore
from kvorum.raft.messages import Error, ReplicaProgress


def describe_quorum(core: RaftCore, now_ms: float) -> QuorumDescription:
    """Return what a replica knows of the quorum as its leader; without replicas elsewhere."""
    known = core.describe_quorum(now_ms)
    leader_id = core.role.leader_id
    if known.error is not Error.NONE or leader_id is None:
        return NO_QUORUM
    return QuorumDescription(
        leader_id=leader_id,
        kraft_version=core.history.kraft_version,
        may_change=core.may_change_voters,
        log_end_offset=core.log.end_offset,
        voters=tuple(map(_replica_state, known.voters)),
        observers=tuple(map(_replica_state, known.observers)),
    )


def _replica_state(progress: ReplicaProgress) -> ReplicaState:
    return ReplicaState(
        key=VoterKey(progress.key.id, progress.key.directory_id),
        log_end_offset=progress.log_end_offset,
        last_fetch_age_ms=progress.last_fetch_age_ms,
    )

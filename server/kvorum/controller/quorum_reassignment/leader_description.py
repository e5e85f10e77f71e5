"""The quorum as its leader describes it to others, in the form that decisions are made from."""

from __future__ import annotations

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.metadata.voter_key import VoterKey, voter_key
from kvorum.wire.messages.describe_quorum import (
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
)


def quorum_described_by(
    answer: DescribeQuorumResponsePartitionData,
    *,
    kraft_version: int,
    committed_voters: frozenset[VoterKey] | None,
) -> QuorumDescription:
    """Return the quorum that a leader describes; ages of fetches are by the leader's clock.

    The answer does not contain whether the listed voters are committed. They are if they equal
    those of the caller's own log, `committed_voters`: None if the latest ones there are not
    committed either. A leader that has left the voters is about to resign; and one that does not
    know its high watermark has not committed anything in its epoch.
    """
    row = next((one for one in answer.current_voters if one.replica_id == answer.leader_id), None)
    now_ms = None if row is None else row.last_fetch_timestamp
    voters = tuple(_state(one, now_ms) for one in answer.current_voters)
    return QuorumDescription(
        leader_id=answer.leader_id,
        kraft_version=kraft_version,
        may_change=(
            row is not None
            and answer.high_watermark >= 0
            and committed_voters == frozenset(state.key for state in voters)
        ),
        log_end_offset=answer.high_watermark if row is None else row.log_end_offset,
        voters=voters,
        observers=tuple(_state(one, now_ms) for one in answer.observers),
    )


def _state(described: DescribeQuorumResponseReplicaState, now_ms: int | None) -> ReplicaState:
    age_ms = None
    if now_ms is not None and described.last_fetch_timestamp >= 0:
        age_ms = float(max(now_ms - described.last_fetch_timestamp, 0))
    return ReplicaState(
        key=voter_key(described.replica_id, described.replica_directory_id),
        log_end_offset=described.log_end_offset if described.log_end_offset >= 0 else None,
        last_fetch_age_ms=age_ms,
    )

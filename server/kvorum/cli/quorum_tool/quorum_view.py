"""The quorum as clients are shown it, in the form that the rules of the controller read."""

from __future__ import annotations

from collections.abc import Iterable

from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.quorum_calls import QuorumInfo, ReplicaState
from kvorum.controller import quorum_description as controller
from kvorum.controller.quorum_description import QuorumDescription
from kvorum.metadata.target_voters import TargetVoters
from kvorum.metadata.voter_key import VoterKey, voter_key
from kvorum.wire.uuid_text import ZERO_UUID


def description_of(info: QuorumInfo) -> QuorumDescription:
    """Return what the leader knows; ages of fetches are by the leader's clock.

    The voters of a quorum that cannot change have no directories.
    """
    leader = info.leader
    if leader is None:
        raise AdminError("The leader is not among the voters: try again in a moment.")
    is_dynamic = any(voter.directory_id != ZERO_UUID for voter in info.voters)
    return QuorumDescription(
        leader_id=info.leader_id,
        kraft_version=int(is_dynamic),
        may_change=True,
        log_end_offset=leader.log_end_offset,
        voters=tuple(_state_of(one, leader) for one in info.voters),
        observers=tuple(_state_of(one, leader) for one in info.observers),
    )


def key_of(replica: ReplicaState) -> VoterKey:
    """Return the replica's id and directory."""
    return voter_key(replica.replica_id, replica.directory_id)


def targets_of(replicas: Iterable[ReplicaState]) -> TargetVoters:
    """Return the target voters that a leader lists."""
    return tuple(map(key_of, replicas))


def keys_text(keys: Iterable[VoterKey]) -> str:
    """Return replicas as they are printed, "none" for none."""
    return ",".join(map(str, keys)) or "none"


def _state_of(replica: ReplicaState, leader: ReplicaState) -> controller.ReplicaState:
    age_ms = None
    if replica.last_fetch_ms is not None and leader.last_fetch_ms is not None:
        age_ms = float(leader.last_fetch_ms - replica.last_fetch_ms)
    end = replica.log_end_offset
    return controller.ReplicaState(key_of(replica), None if end < 0 else end, age_ms)

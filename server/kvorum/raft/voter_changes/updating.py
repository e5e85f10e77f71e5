"""UpdateRaftVoter: a voter tells its leader where it listens and what it can work at.

From kraft.version 1 on that becomes a record. Below, the leader keeps it in memory, because an
upgrade to version 1 has to know it of every voter.
"""

from __future__ import annotations

from kvorum.raft.basics import ReplicaKey, endpoint_named
from kvorum.raft.messages import Error, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Leader
from kvorum.raft.serving import leader_error, note_contact
from kvorum.raft.voter_changes.appending import append_voters
from kvorum.raft.voter_changes.checks import RECONFIGURABLE_KRAFT_VERSION, refuse_while_changing
from kvorum.raft.voter_set import Voter, VoterSet


def answer_update(
    replica: Replica, now: float, request: UpdateRaftVoterRequest
) -> UpdateRaftVoterResponse:
    """Take in what a voter says of itself; the answer does not wait for a commit."""
    error = _request_error(replica, request)
    leader, key = replica.role, request.voter
    if error is Error.NONE and isinstance(leader, Leader) and key is not None:
        error = _update(replica, leader, now, key=key, request=request)
    return UpdateRaftVoterResponse(error=error, leader=replica.known_leader())


def _request_error(replica: Replica, request: UpdateRaftVoterRequest) -> Error:
    if not request.is_for_this_cluster:
        return Error.INCONSISTENT_CLUSTER_ID
    error = leader_error(replica, request.epoch)
    if error is not Error.NONE:
        return error
    has_directory = request.voter is not None and request.voter.directory_id is not None
    endpoint = endpoint_named(request.endpoints, replica.own.listener_name)
    is_range = 0 <= request.kraft_version_min <= request.kraft_version_max
    is_valid = has_directory and endpoint is not None and is_range
    return Error.NONE if is_valid else Error.INVALID_REQUEST


def _update(
    replica: Replica,
    leader: Leader,
    now: float,
    *,
    key: ReplicaKey,
    request: UpdateRaftVoterRequest,
) -> Error:
    is_busy = refuse_while_changing(replica, now) is not None
    voters = _voters_to_update(replica, leader)
    if is_busy or voters is None:
        return Error.REQUEST_TIMED_OUT
    level = replica.history.kraft_version
    lowest, highest = request.kraft_version_min, request.kraft_version_max
    if not lowest <= level <= highest:
        return Error.INVALID_REQUEST
    is_recorded = level >= RECONFIGURABLE_KRAFT_VERSION
    known = voters.voter_for(key) if is_recorded else voters.by_id(key.id)
    if known is None:
        return Error.VOTER_NOT_FOUND
    updated = voters.with_voter(Voter(key, request.endpoints, lowest, highest))
    if is_recorded:
        append_voters(replica, leader, now, updated)
    else:
        leader.volatile_voters = updated
    note_contact(replica, now, leader=leader, key=key)
    return Error.NONE


def _voters_to_update(replica: Replica, leader: Leader) -> VoterSet | None:
    if replica.history.kraft_version < RECONFIGURABLE_KRAFT_VERSION:
        return leader.volatile_voters
    return replica.voters if replica.are_voters_committed else None

"""UpdateRaftVoter: a voter reports its endpoints and its kraft.versions to the leader.

From kraft.version 1 on the leader appends the report as a record. Below, the leader keeps it in
memory, because an upgrade to version 1 needs it of every voter. Before either, the leader sends a
probe to the reported endpoint: an unreachable one would stall a later failover (KAFKA-20661).

The steps: check that the voters may change; ask the voter which kraft.versions it can work at;
compare them with the reported ones; append the record; respond without waiting for the commit.
"""

from kvorum.raft.basics import ReplicaKey, endpoint_named
from kvorum.raft.effects import SendResponse
from kvorum.raft.fetch_requests import leader_error, note_contact
from kvorum.raft.messages import (
    ApiVersionsResponse,
    Error,
    RequestFailed,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Leader
from kvorum.raft.voter_change_state import PendingUpdate
from kvorum.raft.voter_changes.checks import RECONFIGURABLE_KRAFT_VERSION, refuse_while_changing
from kvorum.raft.voter_changes.completion import end_change
from kvorum.raft.voter_changes.probing import probe_error, probed_versions, send_probe
from kvorum.raft.voter_changes.voters_records import append_voters
from kvorum.raft.voter_set import Voter, VoterSet


def handle_update_voter_request(
    replica: Replica, now: float, *, token: int, request: UpdateRaftVoterRequest
) -> None:
    """Refuse a voter's update, or probe the voter before the update is recorded."""
    error = _request_error(replica, request) or _begin(replica, now, token=token, request=request)
    if error is not Error.NONE:
        answer = UpdateRaftVoterResponse(error=error, leader=replica.known_leader())
        replica.outbox.add(SendResponse(token, answer))


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


def _begin(replica: Replica, now: float, *, token: int, request: UpdateRaftVoterRequest) -> Error:
    leader, key = replica.role, request.voter
    endpoint = endpoint_named(request.endpoints, replica.own.listener_name)
    assert isinstance(leader, Leader)
    assert key is not None
    assert endpoint is not None
    if refuse_while_changing(replica, now) is not None:
        return Error.REQUEST_TIMED_OUT
    updated = _updated_voters(replica, leader, key=key, request=request)
    if isinstance(updated, Error):
        return updated
    note_contact(replica, now, leader=leader, key=key)
    if not send_probe(replica, now, key=key, endpoint=endpoint):
        return Error.REQUEST_TIMED_OUT
    replica.change = PendingUpdate(
        token=token, key=key, request=request, deadline=now + replica.config.voter_probe_ms
    )
    return Error.NONE


def continue_updating_voter(
    replica: Replica, now: float, *, node_id: int, response: ApiVersionsResponse | RequestFailed
) -> str | None:
    """Record an update that the probe confirms; return how the voter failed, if it did."""
    leader, change = replica.role, replica.change
    if not isinstance(leader, Leader) or not isinstance(change, PendingUpdate):
        return None
    if change.key.id != node_id:
        return None
    error_name = probe_error(response)
    if error_name is not None:
        end_change(replica, Error.REQUEST_TIMED_OUT)
        return f"the endpoint that a voter reported fails with {error_name}"
    end_change(replica, _update(replica, leader, now, change, probed_versions(response)))
    return None


def _update(
    replica: Replica,
    leader: Leader,
    now: float,
    change: PendingUpdate,
    versions: tuple[int, int] | None,
) -> Error:
    request = change.request
    if versions != (request.kraft_version_min, request.kraft_version_max):
        return Error.INVALID_REQUEST
    # The kraft.version may have risen since the voter was asked.
    updated = _updated_voters(replica, leader, key=change.key, request=request)
    if isinstance(updated, Error):
        return updated
    if replica.history.kraft_version >= RECONFIGURABLE_KRAFT_VERSION:
        append_voters(replica, leader, now, updated)
    else:
        leader.volatile_voters = updated
    return Error.NONE


def _updated_voters(
    replica: Replica, leader: Leader, *, key: ReplicaKey, request: UpdateRaftVoterRequest
) -> VoterSet | Error:
    """Return the voters with one voter's update, or the error that refuses it."""
    voters = _voters_to_update(replica, leader)
    if voters is None:
        return Error.REQUEST_TIMED_OUT
    level = replica.history.kraft_version
    lowest, highest = request.kraft_version_min, request.kraft_version_max
    if not lowest <= level <= highest:
        return Error.INVALID_REQUEST
    is_recorded = level >= RECONFIGURABLE_KRAFT_VERSION
    known = voters.voter_for(key) if is_recorded else voters.by_id(key.id)
    if known is None:
        return Error.VOTER_NOT_FOUND
    return voters.with_voter(Voter(key, request.endpoints, lowest, highest))


def _voters_to_update(replica: Replica, leader: Leader) -> VoterSet | None:
    if replica.history.kraft_version < RECONFIGURABLE_KRAFT_VERSION:
        return leader.volatile_voters
    return replica.voters if replica.are_voters_committed else None

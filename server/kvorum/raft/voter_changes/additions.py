"""AddRaftVoter, by which a replica that keeps up with the log becomes a voter; and RemoveRaftVoter.

The steps of an addition: check that the voters may change; ask the node which kraft.versions it can
work at, which also shows that it can be reached at its endpoint; check that it has caught up;
append the record; respond when it is committed, or at once where the request asks for that.
"""

from kvorum.raft.effects import SendResponse
from kvorum.raft.endpoints import Endpoint, endpoint_named
from kvorum.raft.fetch_requests import leader_error
from kvorum.raft.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsResponse,
    Error,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    RequestFailed,
)
from kvorum.raft.replica import AddVoterHandlerState, RemoveVoterHandlerState, Replica
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Leader
from kvorum.raft.voter import Voter
from kvorum.raft.voter_changes.steps import (
    Refusal,
    answer_change,
    append_voters,
    end_change,
    end_probe_of_update,
    endpoints_text,
    key_text,
    keys_text,
    listener_text,
    probe_error,
    probed_versions,
    refuse_unless_settled,
    refuse_while_changing,
    send_probe,
)


def handle_add_voter_request(
    replica: Replica, now: float, *, token: int, request: AddRaftVoterRequest
) -> None:
    """Refuse a new voter, or begin to add it."""
    refusal = _begin(replica, now, token=token, request=request)
    if refusal is not None:
        answer = AddRaftVoterResponse(refusal.error, refusal.message)
        replica.outbox.add(SendResponse(token, answer))


def _begin(
    replica: Replica, now: float, *, token: int, request: AddRaftVoterRequest
) -> Refusal | None:
    key = request.voter
    error = leader_error(replica, replica.role.epoch)
    if error is not Error.NONE:
        return Refusal(error)
    if key is None or key.directory_id is None:
        return Refusal(Error.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    endpoint = endpoint_named(request.endpoints, replica.own.listener_name)
    if endpoint is None:
        return Refusal(
            Error.INVALID_REQUEST,
            f"Add voter request didn't include the endpoint ({endpoints_text(request.endpoints)}) "
            f"for the default listener {listener_text(replica.own.listener_name)}",
        )
    end_probe_of_update(replica)
    refusal = (
        refuse_while_changing(replica, now)
        or refuse_unless_settled(replica, "adding")
        or _refuse_duplicate(replica, key)
        or _ask(replica, now, key=key, endpoint=endpoint)
    )
    if refusal is None:
        replica.change = AddVoterHandlerState(
            token=token,
            key=key,
            endpoints=request.endpoints,
            acks_when_committed=request.acks_when_committed,
            deadline=now + replica.config.request_timeout_ms,
        )
    return refusal


def _refuse_duplicate(replica: Replica, key: ReplicaKey) -> Refusal | None:
    """Refuse a node that is a voter; to replace its directory, its old entry must go first."""
    voters = replica.voters
    if voters.by_id(key.id) is None:
        return None
    known = keys_text(voter.key for voter in voters.voters)
    return Refusal(
        Error.DUPLICATE_VOTER,
        f"The voter id for {key_text(key)} is already part of the set of voters {known}.",
    )


def _ask(replica: Replica, now: float, *, key: ReplicaKey, endpoint: Endpoint) -> Refusal | None:
    """Ask the new voter for its kraft.versions; refuse where a request to it is under way."""
    if send_probe(replica, now, key=key, endpoint=endpoint):
        return None
    return Refusal(
        Error.REQUEST_TIMED_OUT, f"New voter {key_text(key)} is not ready to receive requests"
    )


def continue_adding_voter(
    replica: Replica, now: float, *, node_id: int, response: ApiVersionsResponse | RequestFailed
) -> str | None:
    """Add the node that has answered, or end the change; return how the node failed, if it did."""
    leader, change = replica.role, replica.change
    if not isinstance(leader, Leader) or not isinstance(change, AddVoterHandlerState):
        return None
    if change.record_offset is not None or change.key.id != node_id:
        return None
    error_name = probe_error(response)
    if error_name is not None:
        text = f"Aborted add voter operation for since API_VERSIONS returned an error {error_name}"
        end_change(replica, Error.REQUEST_TIMED_OUT, text)
        return f"the node to be added as a voter fails with {error_name}"
    known = probed_versions(response)
    refusal = _refuse_versions(replica, change, known)
    refusal = refusal or _refuse_lagging(replica, leader, now, change.key)
    if refusal is not None:
        end_change(replica, refusal.error, refusal.message)
        return None
    versions = known or (0, 0)
    voters = replica.voters.with_voter(Voter(change.key, change.endpoints, *versions))
    change.record_offset = append_voters(replica, leader, now, voters)
    if not change.acks_when_committed:
        answer_change(replica, Error.NONE)
    return None


def _refuse_versions(
    replica: Replica, change: AddVoterHandlerState, versions: tuple[int, int] | None
) -> Refusal | None:
    level = replica.history.kraft_version
    if versions is not None and versions[0] <= level <= versions[1]:
        return None
    # Kafka's own text lacks the bracket where there is a range.
    text = "(min: 0, max: 0)" if versions is None else f"(min: {versions[0]}, max: {versions[1]}"
    return Refusal(
        Error.INVALID_REQUEST,
        f"Aborted add voter operation for {key_text(change.key)} since the kraft.version range "
        f"{text} doesn't support the finalized version {level}",
    )


def _refuse_lagging(
    replica: Replica, leader: Leader, now: float, key: ReplicaKey
) -> Refusal | None:
    """Refuse a replica that never had the whole log or has not fetched for a long time."""
    known = leader.progress.get(key)
    has_been_there = known is not None and known.last_caught_up is not None
    last_fetch = None if known is None else known.last_fetch
    oldest = now - replica.config.caught_up_window_ms
    if has_been_there and last_fetch is not None and last_fetch > oldest:
        return None
    return Refusal(
        Error.REQUEST_TIMED_OUT,
        f"Aborted add voter operation for {key_text(key)} since it is lagging behind",
    )


def handle_remove_voter_request(
    replica: Replica, now: float, *, token: int, request: RemoveRaftVoterRequest
) -> None:
    """Refuse to remove a voter, or append the set without it; the response waits for the commit."""
    refusal = _begin_removal(replica, now, token=token, key=request.voter)
    if refusal is not None:
        answer = RemoveRaftVoterResponse(refusal.error, refusal.message)
        replica.outbox.add(SendResponse(token, answer))


def _begin_removal(
    replica: Replica, now: float, *, token: int, key: ReplicaKey | None
) -> Refusal | None:
    leader = replica.role
    error = leader_error(replica, leader.epoch)
    if error is not Error.NONE or not isinstance(leader, Leader):
        return Refusal(error)
    if key is None or key.directory_id is None:
        return Refusal(Error.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
    end_probe_of_update(replica)
    refusal = (
        refuse_while_changing(replica, now)
        or refuse_unless_settled(replica, "removing")
        or _refuse_unknown(replica, key)
    )
    if refusal is None:
        offset = append_voters(replica, leader, now, replica.voters.without(key.id))
        replica.change = RemoveVoterHandlerState(
            token=token, record_offset=offset, deadline=now + replica.config.request_timeout_ms
        )
    return refusal


def _refuse_unknown(replica: Replica, key: ReplicaKey) -> Refusal | None:
    """Refuse a replica that is not a voter with this directory, and the last voter."""
    voters = replica.voters
    known = voters.by_id(key.id)
    if known is not None and known.key == key and len(voters.voters) > 1:
        return None
    keys = keys_text(voter.key for voter in voters.voters)
    return Refusal(
        Error.VOTER_NOT_FOUND, f"Cannot remove voter {key_text(key)} from the set of voters {keys}"
    )

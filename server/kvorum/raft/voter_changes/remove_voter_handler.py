"""RemoveRaftVoter: a replica, which may be the leader itself, ceases to be a voter."""

from kvorum.raft.basics import ReplicaKey
from kvorum.raft.effects import SendResponse
from kvorum.raft.fetch_requests import leader_error
from kvorum.raft.messages import Error, RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Leader
from kvorum.raft.voter_change_state import RemoveVoterHandlerState
from kvorum.raft.voter_changes.checks import (
    Refusal,
    key_text,
    keys_text,
    refuse_unless_settled,
    refuse_while_changing,
)
from kvorum.raft.voter_changes.voters_records import append_voters


def handle_remove_voter_request(
    replica: Replica, now: float, *, token: int, request: RemoveRaftVoterRequest
) -> None:
    """Refuse to remove a voter, or append the set without it; the response waits for the commit."""
    refusal = _begin(replica, now, token=token, key=request.voter)
    if refusal is not None:
        answer = RemoveRaftVoterResponse(refusal.error, refusal.message)
        replica.outbox.add(SendResponse(token, answer))


def _begin(replica: Replica, now: float, *, token: int, key: ReplicaKey | None) -> Refusal | None:
    leader = replica.role
    error = leader_error(replica, leader.epoch)
    if error is not Error.NONE or not isinstance(leader, Leader):
        return Refusal(error)
    if key is None or key.directory_id is None:
        return Refusal(Error.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
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

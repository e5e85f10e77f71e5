"""Answers to what concerns elections: votes, new leaders, leaders that go."""

from __future__ import annotations

from kvorum.raft.basics import EPOCH_MAX, Endpoints, ReplicaKey
from kvorum.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    Error,
    KnownLeader,
    VoteRequest,
    VoteResponse,
)
from kvorum.raft.replica import Replica
from kvorum.raft.roles import Follower, Leader, Prospective, Resigned


def learn_leader(replica: Replica, now: float, leader: KnownLeader) -> bool:
    """Move to what a peer says of epoch and leader, where that is news; tell whether it was.

    What cannot be right, like a second leader of one epoch, is not believed. An observer enters
    only an epoch that somebody leads: a candidate that had no votes in its epoch, and is gone, may
    have told nobody else of it, and the observer could not follow the leader of the others. It has
    given no vote there, so it owes that epoch nothing.
    """
    role = replica.role
    # That this replica leads is something that only it can know.
    leader_id = None if leader.leader_id == replica.own.key.id else leader.leader_id
    if not role.epoch <= leader.epoch <= EPOCH_MAX:
        return False
    if leader_id is None and not replica.may_stand:
        return False
    endpoints: Endpoints = ()
    if leader_id is not None:
        endpoints = leader.endpoints or replica.voters.endpoints_of(leader_id)
    if leader.epoch > role.epoch:
        if leader_id is not None and endpoints:
            replica.become_follower(
                now, epoch=leader.epoch, leader_id=leader_id, endpoints=endpoints
            )
        else:
            replica.become_unattached(now, leader.epoch, leader_id=leader_id)
        return True
    if leader_id is None or role.leader_id not in {None, leader_id}:
        return False
    if len(endpoints) <= len(role.leader_endpoints):
        return False
    replica.become_follower(now, epoch=leader.epoch, leader_id=leader_id, endpoints=endpoints)
    return True


def answer_vote(replica: Replica, now: float, request: VoteRequest) -> VoteResponse:
    """Give or refuse a vote or a pre-vote; a higher epoch is entered either way."""
    error = _vote_error(replica, request)
    if error is Error.NONE and request.epoch > replica.role.epoch:
        replica.become_unattached(now, request.epoch)
    if error is Error.NONE and not _is_meant(replica, request.voter):
        error = Error.INVALID_VOTER_KEY
    if error is not Error.NONE:
        return VoteResponse(error=error, leader=replica.known_leader())
    is_up_to_date = not request.log_end.is_before(replica.log.end)
    is_granted = replica.role.would_grant(request, is_up_to_date=is_up_to_date)
    if is_granted and not request.is_pre_vote and replica.role.voted is None:
        replica.note_vote(now, request.replica)
    if is_granted and request.is_pre_vote:
        _let_pass(replica, now, request.replica)
    return VoteResponse(error=Error.NONE, leader=replica.known_leader(), is_granted=is_granted)


def _let_pass(replica: Replica, now: float, other: ReplicaKey) -> None:
    """Leave a moment to another that may win, so that the two do not split the votes."""
    role = replica.role
    until = now + replica.config.precedence_ms
    if isinstance(role, Follower) and role.is_leader_gone and not role.has_let_pass:
        role.has_let_pass = True
        role.fetch_deadline = max(role.fetch_deadline, until)
    elif isinstance(role, Prospective) and other.id < replica.own.key.id:
        role.let_pass(until)


def _vote_error(replica: Replica, request: VoteRequest) -> Error:
    end = request.log_end
    # Who asks for a vote in an epoch cannot have records of it yet.
    epoch_max = request.epoch if request.is_pre_vote else request.epoch - 1
    if end.offset < 0 or not 0 <= end.epoch <= epoch_max or request.epoch > EPOCH_MAX:
        return Error.INVALID_REQUEST
    if request.epoch < replica.role.epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.INVALID_REQUEST if request.replica.id < 0 else Error.NONE


def _is_meant(replica: Replica, voter: ReplicaKey | None) -> bool:
    """Tell whether a request for `voter` is for this replica; None is for anyone."""
    if voter is None:
        return True
    own = replica.own.key
    return voter.id == own.id and voter.directory_id in {None, own.directory_id}


def answer_begin_quorum_epoch(
    replica: Replica, now: float, request: BeginQuorumEpochRequest
) -> BeginQuorumEpochResponse:
    """Follow a new leader."""
    error = _leader_error(replica, request.epoch, request.leader_id)
    if error is Error.NONE and _contradicts(replica, request.epoch, request.leader_id):
        error = Error.UNKNOWN_LEADER_EPOCH
    if error is Error.NONE:
        known = KnownLeader(request.epoch, request.leader_id, request.endpoints)
        learn_leader(replica, now, known)
        if not _is_meant(replica, request.voter):
            error = Error.INVALID_VOTER_KEY
    return BeginQuorumEpochResponse(error=error, leader=replica.known_leader())


def answer_end_quorum_epoch(
    replica: Replica, now: float, request: EndQuorumEpochRequest
) -> EndQuorumEpochResponse:
    """Prepare to replace a leader that has resigned: who is first in line does not wait."""
    error = _leader_error(replica, request.epoch, request.leader_id)
    if error is Error.NONE and _contradicts(replica, request.epoch, request.leader_id):
        error = Error.UNKNOWN_LEADER_EPOCH
    if error is Error.NONE:
        known = KnownLeader(request.epoch, request.leader_id, request.endpoints)
        learn_leader(replica, now, known)
        role = replica.role
        if isinstance(role, Follower) and role.leader_id == request.leader_id:
            role.fetch_deadline = now + _successor_wait_ms(replica, request.preferred)
            # There is no leader to lose any more: who comes first in line needs pre-votes.
            role.has_fetched = False
    return EndQuorumEpochResponse(error=error, leader=replica.known_leader())


def _leader_error(replica: Replica, epoch: int, leader_id: int) -> Error:
    if epoch < replica.role.epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.INVALID_REQUEST if leader_id < 0 or epoch > EPOCH_MAX else Error.NONE


def _contradicts(replica: Replica, epoch: int, leader_id: int) -> bool:
    """Tell whether a peer names a leader who cannot be: an epoch has one, and it knows that it is.

    Such a peer is told an error that makes it drop the answer. To a real Kafka node the leader in
    the answer would be a broken invariant, and stop it.
    """
    role = replica.role
    if leader_id == replica.own.key.id:
        return not (isinstance(role, Leader | Resigned) and role.epoch == epoch)
    return epoch == role.epoch and role.leader_id not in {None, leader_id}


def _successor_wait_ms(replica: Replica, preferred: tuple[ReplicaKey, ...]) -> int:
    """Return how long to wait for the successors before this one; the longest if it is none."""
    longest = replica.config.election_backoff_ms_max
    own = replica.own.key
    for position, key in enumerate(preferred):
        if key.id == own.id and key.directory_id in {None, own.directory_id}:
            if position == 0:
                return 0
            step = longest >> (len(preferred) - 1)
            return min(longest, step << (position - 1))
    return longest

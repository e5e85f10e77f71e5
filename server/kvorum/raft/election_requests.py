"""Handlers of the requests of elections: Vote, BeginQuorumEpoch, EndQuorumEpoch."""

from kvorum.raft.election_record import EPOCH_MAX
from kvorum.raft.endpoints import Endpoints
from kvorum.raft.leader_contact import ContactEvent, LeaderContact
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
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import Follower, Leader, Prospective, Resigned


def learn_leader(replica: Replica, now: float, leader: KnownLeader) -> bool:
    """Take over a peer's epoch and leader where they are new; return whether they were.

    What cannot be right, like a second leader of one epoch, is ignored. An observer enters only an
    epoch that has a leader: the peer may be the only node that has heard of a candidate which got
    no votes and is gone, and in that candidate's epoch the observer could not follow the leader of
    the others. To give a vote it enters the epoch when it is asked for the vote.
    """
    role = replica.role
    # Only this replica itself can know that it leads: a peer that names it is ignored.
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


def handle_vote_request(replica: Replica, now: float, request: VoteRequest) -> VoteResponse:
    """Give or refuse a vote or a pre-vote; a voter enters a higher epoch either way."""
    error = _vote_error(replica, request)
    is_up_to_date = request.log_end >= replica.log.end
    is_later = request.epoch > replica.role.epoch
    # An observer without a vote to give stays. The candidate may have been removed, and not know
    # it: it then calls elections among former voters alone, of which the leader of the others never
    # hears, and an observer that had entered one of these epochs could not follow that leader.
    stays = is_later and not (is_up_to_date or replica.may_stand)
    if error is Error.NONE and is_later and not stays:
        replica.become_unattached(now, request.epoch)
    if error is Error.NONE and not _is_meant(replica, request.voter):
        error = Error.INVALID_VOTER_KEY
    if error is not Error.NONE or stays:
        return VoteResponse(error=error, leader=replica.known_leader())
    is_granted = replica.role.would_grant(request, is_up_to_date=is_up_to_date)
    if is_granted and not request.is_pre_vote and replica.role.voted is None:
        replica.note_vote(now, request.replica)
    if is_granted and request.is_pre_vote:
        _let_pass(replica, now, request.replica)
    elif request.is_pre_vote and not is_up_to_date:
        _stand_instead(replica, now)
    return VoteResponse(error=Error.NONE, leader=replica.known_leader(), is_granted=is_granted)


def _let_pass(replica: Replica, now: float, other: ReplicaKey) -> None:
    """Wait a moment for another nominee that may win, so that the two do not split the votes."""
    role = replica.role
    until = now + replica.config.precedence_ms
    if isinstance(role, Follower) and role.contact is LeaderContact.GONE:
        role.note(ContactEvent.YIELDED)
        role.fetch_deadline = max(role.fetch_deadline, until)
    elif isinstance(role, Prospective) and other.id < replica.own.key.id:
        role.let_pass(until)


def _stand_instead(replica: Replica, now: float) -> None:
    """Shorten a resigned leader's wait after a pre-vote that it refused for a shorter log.

    A resigned leader waits for a successor with a log as long as its own. There may be none, and
    then this replica has to stand itself.
    """
    role = replica.role
    if isinstance(role, Resigned) and not replica.is_shutting_down:
        soon = now + replica.config.succession_step_ms
        role.election_deadline = min(role.election_deadline, soon)


def _vote_error(replica: Replica, request: VoteRequest) -> Error:
    end = request.log_end
    # A candidate of an epoch cannot have records of that epoch yet.
    epoch_max = request.epoch if request.is_pre_vote else request.epoch - 1
    if end.offset < 0 or not 0 <= end.epoch <= epoch_max or request.epoch > EPOCH_MAX:
        return Error.INVALID_REQUEST
    if request.epoch < replica.role.epoch:
        return Error.FENCED_LEADER_EPOCH
    return Error.INVALID_REQUEST if request.replica.id < 0 else Error.NONE


def _is_meant(replica: Replica, voter: ReplicaKey | None) -> bool:
    """Return whether `voter` names this replica; None names every replica."""
    if voter is None:
        return True
    own = replica.own.key
    return voter.id == own.id and voter.directory_id in {None, own.directory_id}


def handle_begin_quorum_epoch_request(
    replica: Replica, now: float, request: BeginQuorumEpochRequest
) -> BeginQuorumEpochResponse:
    """Follow a new leader."""
    error = _learn_named_leader(replica, now, request)
    if error is Error.NONE and not _is_meant(replica, request.voter):
        error = Error.INVALID_VOTER_KEY
    return BeginQuorumEpochResponse(error=error, leader=replica.known_leader())


def handle_end_quorum_epoch_request(
    replica: Replica, now: float, request: EndQuorumEpochRequest
) -> EndQuorumEpochResponse:
    """Prepare to replace a leader that has resigned; the first successor does not wait."""
    error = _learn_named_leader(replica, now, request)
    role = replica.role
    is_learned = error is Error.NONE and role.leader_id == request.leader_id
    if is_learned and isinstance(role, Follower):
        role.fetch_deadline = now + _successor_wait_ms(replica, role, request.preferred)
        # The leader needs no protection any more, and the first successor needs pre-votes.
        has_named = bool(request.preferred)
        role.note(ContactEvent.HANDED_OVER if has_named else ContactEvent.RESIGNED)
    return EndQuorumEpochResponse(error=error, leader=replica.known_leader())


def _learn_named_leader(
    replica: Replica, now: float, request: BeginQuorumEpochRequest | EndQuorumEpochRequest
) -> Error:
    """Take over the leader that a request names, or return why that is refused."""
    epoch, leader_id = request.epoch, request.leader_id
    if epoch < replica.role.epoch:
        return Error.FENCED_LEADER_EPOCH
    if leader_id < 0 or epoch > EPOCH_MAX:
        return Error.INVALID_REQUEST
    if _contradicts(replica, epoch, leader_id):
        return Error.UNKNOWN_LEADER_EPOCH
    learn_leader(replica, now, KnownLeader(epoch, leader_id, request.endpoints))
    return Error.NONE


def _contradicts(replica: Replica, epoch: int, leader_id: int) -> bool:
    """Return whether a peer names a leader that contradicts what this replica knows.

    An epoch has one leader, and that leader knows that it leads. The error sent to such a peer
    makes it drop the response: a real Kafka node would take the leader in the response for a
    broken invariant and stop.
    """
    role = replica.role
    if leader_id == replica.own.key.id:
        return not (isinstance(role, Leader | Resigned) and role.epoch == epoch)
    return epoch == role.epoch and role.leader_id not in {None, leader_id}


def succession_wait_ms(replica: Replica, role: Follower) -> float:
    """Return how long to wait before an election, so that two voters rarely begin together.

    All voters lose their leader at the same moment, so the first try goes by the order of their
    ids. Where that has failed already, or the leader was never reached, chance has to decide.
    """
    step_ms = replica.config.succession_step_ms
    successors = [voter_id for voter_id in replica.voters.ids if voter_id != role.leader_id]
    if role.contact is not LeaderContact.ALIVE:
        return step_ms * (1 + len(successors) * replica.random.random())
    return step_ms * (successors.index(replica.own.key.id) + replica.random.random() / 2)


def _successor_wait_ms(
    replica: Replica, role: Follower, preferred: tuple[ReplicaKey, ...]
) -> float:
    """Return how long to wait for the successors that come before this replica.

    A replica that is not among them waits the longest. A leader that resigned because of a restart
    knows no order of successors, and names none.
    """
    if not preferred and replica.is_voter:
        return succession_wait_ms(replica, role)
    longest = replica.config.election_backoff_ms_max
    own = replica.own.key
    for position, key in enumerate(preferred):
        if key.id == own.id and key.directory_id in {None, own.directory_id}:
            if position == 0:
                return 0
            step = longest >> (len(preferred) - 1)
            return min(longest, step << (position - 1))
    return longest

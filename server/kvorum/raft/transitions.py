"""The table of the allowed moves between roles; every move of the core is checked here first.

An observer can only be unattached or a follower. Moves that the table allows must also fit the
epochs: those rules are in `check_move`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kvorum.raft.errors import IllegalMoveError
from kvorum.raft.roles import Candidate, Follower, Leader, Prospective, Role, RoleName

ALLOWED_MOVES: Mapping[RoleName, frozenset[RoleName]] = MappingProxyType(
    {
        # Into a higher epoch, to a leader, or, a voter after its election timeout, to an election.
        # A move to itself in the same epoch notes a vote.
        RoleName.UNATTACHED: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE}
        ),
        # A move to itself learns more endpoints of the leader, or a leader of a higher epoch.
        RoleName.FOLLOWER: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE}
        ),
        # A move to itself notes a vote. Only this role leads to candidate.
        RoleName.PROSPECTIVE: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE, RoleName.CANDIDATE}
        ),
        # Only this role leads to leader.
        RoleName.CANDIDATE: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE, RoleName.LEADER}
        ),
        # Only this role, and a restart, lead to resigned.
        RoleName.LEADER: frozenset({RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.RESIGNED}),
        # Only a lone voter, which comes back from a restart as resigned, becomes prospective.
        RoleName.RESIGNED: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE}
        ),
    }
)
OBSERVER_ROLES = frozenset({RoleName.UNATTACHED, RoleName.FOLLOWER})


def check_move(old: Role, new: Role, *, own_id: int, may_stand: bool, is_only_voter: bool) -> None:
    """Raise IllegalMoveError unless a replica may move from `old` to `new`."""
    if new.name not in ALLOWED_MOVES[old.name]:
        raise _illegal(old, new, "there is no such move")
    # A leader that is removed from the voters resigns like any other.
    is_going = new.name is RoleName.RESIGNED
    if not may_stand and new.name not in OBSERVER_ROLES and not is_going:
        raise _illegal(old, new, "an observer takes no part in elections")
    if new.name is RoleName.CANDIDATE and new.epoch != old.epoch + 1:
        raise _illegal(old, new, "a candidate begins the next epoch")
    if new.name in {RoleName.LEADER, RoleName.RESIGNED} and new.epoch != old.epoch:
        raise _illegal(old, new, "the epoch must stay")
    if new.epoch < old.epoch:
        raise _illegal(old, new, "epochs only grow")
    _check_vote(old, new)
    if isinstance(new, Follower):
        _check_following(old, new, own_id=own_id)
    elif new.name is RoleName.UNATTACHED:
        _check_detaching(old, new)
    elif isinstance(new, Prospective):
        _check_prospect(old, new, is_only_voter=is_only_voter)
    elif isinstance(new, Leader) and not (isinstance(old, Candidate) and old.tally.is_granted):
        raise _illegal(old, new, "a majority has not voted for it")


def _check_vote(old: Role, new: Role) -> None:
    """Raise IllegalMoveError where a vote would be forgotten or changed within its epoch.

    A leader need not keep its vote: its record names it as the leader, and that rules out any
    other vote in the epoch.
    """
    if new.name is RoleName.LEADER:
        return
    if new.epoch == old.epoch and old.voted is not None and new.voted != old.voted:
        raise _illegal(old, new, "the vote of this epoch would change")


def _check_following(old: Role, new: Follower, *, own_id: int) -> None:
    if new.leader_id == own_id:
        raise _illegal(old, new, "a replica does not follow itself")
    if not new.leader_endpoints:
        raise _illegal(old, new, "a leader to follow must have an endpoint")
    if new.epoch > old.epoch:
        return
    if old.name is RoleName.LEADER:
        raise _illegal(old, new, "a leader follows nobody in its own epoch")
    if old.leader_id is not None and old.leader_id != new.leader_id:
        raise _illegal(old, new, "an epoch has one leader")
    if isinstance(old, Follower) and len(new.leader_endpoints) <= len(old.leader_endpoints):
        raise _illegal(old, new, "that leader is being followed already")


def _check_detaching(old: Role, new: Role) -> None:
    """Check a move to unattached; in the same epoch it leaves a pre-vote, or notes a vote."""
    if new.epoch > old.epoch or old.name is RoleName.PROSPECTIVE:
        return
    notes_vote = old.name is RoleName.UNATTACHED and old.voted is None and new.voted is not None
    if not notes_vote:
        raise _illegal(old, new, "the epoch must grow")


def _check_prospect(old: Role, new: Prospective, *, is_only_voter: bool) -> None:
    if new.epoch != old.epoch:
        raise _illegal(old, new, "asking for pre-votes leaves the epoch as it is")
    if isinstance(old, Prospective) and not (old.voted is None and new.voted is not None):
        raise _illegal(old, new, "it is prospective already")
    if old.name is RoleName.RESIGNED and not is_only_voter:
        raise _illegal(old, new, "it gave up this epoch")


def _illegal(old: Role, new: Role, why: str) -> IllegalMoveError:
    return IllegalMoveError(
        f"{old.name.value} in epoch {old.epoch} to {new.name.value} in epoch {new.epoch}: {why}"
    )

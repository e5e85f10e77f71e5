"""Which role may follow which; every move of the core is checked here first.

An observer can only be unattached or a follower. Moves that the table allows must also fit the
epochs: those rules are in `check_move`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvorum.raft.roles import Candidate, Follower, Leader, Prospective, Role, RoleName

ALLOWED_MOVES: Mapping[RoleName, frozenset[RoleName]] = MappingProxyType(
    {
        # Into a higher epoch, to a leader, or, a voter after its election timeout, to an election.
        # To itself also in the same epoch: to note a vote.
        RoleName.UNATTACHED: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE}
        ),
        # To itself only for more endpoints of the same leader, or a leader of a higher epoch.
        RoleName.FOLLOWER: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE}
        ),
        # To itself only to note a vote. The one way to become a candidate.
        RoleName.PROSPECTIVE: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE, RoleName.CANDIDATE}
        ),
        # The one way to become a leader.
        RoleName.CANDIDATE: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE, RoleName.LEADER}
        ),
        # The one way to become resigned, a restart apart.
        RoleName.LEADER: frozenset({RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.RESIGNED}),
        # To prospective only for a lone voter, which comes back from a restart as resigned.
        RoleName.RESIGNED: frozenset(
            {RoleName.UNATTACHED, RoleName.FOLLOWER, RoleName.PROSPECTIVE}
        ),
    }
)
OBSERVER_ROLES = frozenset({RoleName.UNATTACHED, RoleName.FOLLOWER})


class IllegalMoveError(Exception):
    """The core was about to move to a role it must not be in: an invariant is broken."""


def check_move(old: Role, new: Role, *, own_id: int, may_stand: bool, is_only_voter: bool) -> None:
    """Raise IllegalMoveError unless a replica may move from `old` to `new`."""
    if new.name not in ALLOWED_MOVES[old.name]:
        raise _illegal(old, new, "there is no such move")
    # A leader that has removed itself resigns like any other.
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
    """Demand that a vote given in an epoch is neither forgotten in it nor given twice.

    But a leader need not keep it: that it leads is kept, and speaks against any other vote.
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
    """To unattached in the same epoch: out of a lost pre-vote, or to note a vote."""
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

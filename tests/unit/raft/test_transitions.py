"""Every pair of roles, with every combination of facts that the rules speak of."""

from itertools import product

import pytest

from kvorum.raft.endpoints import Endpoint
from kvorum.raft.epoch_election import EpochElection
from kvorum.raft.errors import IllegalMoveError
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    RoleName,
    Unattached,
)
from kvorum.raft.transitions import ALLOWED_MOVES, check_move
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet

OWN = ReplicaKey(1, b"1" * 16)
OTHER = ReplicaKey(2, b"2" * 16)
ENDPOINTS = (Endpoint("CONTROLLER", "host", 9093),)
MORE_ENDPOINTS = (*ENDPOINTS, Endpoint("SECOND", "host", 9094))


def tally(*, is_won: bool) -> EpochElection:
    voters = VoterSet.of(Voter(key, ENDPOINTS) for key in (OWN, OTHER, ReplicaKey(3, b"3" * 16)))
    made = EpochElection(voters, own_key=OWN)
    if is_won:
        made.record(OTHER, is_granted=True)
    return made


def make(
    name: RoleName,
    epoch: int,
    *,
    voted: ReplicaKey | None = None,
    leader_id: int | None = None,
    is_won: bool = True,
) -> Role:
    match name:
        case RoleName.UNATTACHED:
            return Unattached(epoch, election_deadline=0, leader_id=leader_id, voted=voted)
        case RoleName.FOLLOWER:
            return Follower(
                epoch,
                leader_id=leader_id or 2,
                leader_endpoints=ENDPOINTS,
                fetch_deadline=0,
                voted=voted,
            )
        case RoleName.PROSPECTIVE:
            return Prospective(
                epoch,
                tally=tally(is_won=is_won),
                election_deadline=0,
                leader_id=leader_id,
                voted=voted,
            )
        case RoleName.CANDIDATE:
            return Candidate(epoch, own_key=OWN, tally=tally(is_won=is_won), election_deadline=0)
        case RoleName.LEADER:
            return Leader(
                epoch,
                own_key=OWN,
                own_endpoints=ENDPOINTS,
                epoch_start_offset=0,
                granting_ids=(1, 2),
                check_quorum_deadline=0,
            )
        case RoleName.RESIGNED:
            return Resigned(
                epoch, own_key=OWN, preferred=(), unacked_ids=frozenset(), election_deadline=0
            )


def is_allowed(old: Role, new: Role, *, may_stand: bool = True, is_only: bool = False) -> bool:
    try:
        check_move(old, new, own_id=1, may_stand=may_stand, is_only_voter=is_only)
    except IllegalMoveError:
        return False
    return True


def test_the_table_names_every_role() -> None:
    assert set(ALLOWED_MOVES) == set(RoleName)


@pytest.mark.parametrize(("old", "new"), list(product(RoleName, RoleName)))
def test_what_the_table_lacks_is_illegal_in_every_epoch(old: RoleName, new: RoleName) -> None:
    # A node that leaves a candidacy in its epoch keeps the vote for itself.
    voted = OWN if old is RoleName.CANDIDATE else None
    legal_epochs = [
        epoch
        for epoch in range(6)
        if is_allowed(make(old, 3), make(new, epoch, voted=voted), is_only=True)
    ]
    if new in ALLOWED_MOVES[old]:
        assert all(epoch >= 3 for epoch in legal_epochs)
        assert legal_epochs or (old, new) == (RoleName.PROSPECTIVE, RoleName.PROSPECTIVE)
    else:
        assert legal_epochs == []


@pytest.mark.parametrize(("old", "new"), list(product(RoleName, RoleName)))
def test_an_observer_only_looks_for_a_leader_or_follows_one(old: RoleName, new: RoleName) -> None:
    for epoch in range(6):
        if is_allowed(make(old, 3), make(new, epoch), may_stand=False):
            is_removed_leader = (old, new) == (RoleName.LEADER, RoleName.RESIGNED)
            assert is_removed_leader or new in {RoleName.UNATTACHED, RoleName.FOLLOWER}


def test_only_a_majority_makes_a_leader() -> None:
    assert is_allowed(make(RoleName.CANDIDATE, 3), make(RoleName.LEADER, 3))
    assert not is_allowed(make(RoleName.CANDIDATE, 3, is_won=False), make(RoleName.LEADER, 3))
    assert not is_allowed(make(RoleName.CANDIDATE, 3), make(RoleName.LEADER, 4))


def test_a_candidate_begins_the_next_epoch_and_no_other() -> None:
    allowed = [
        epoch
        for epoch in range(6)
        if is_allowed(make(RoleName.PROSPECTIVE, 3), make(RoleName.CANDIDATE, epoch))
    ]
    assert allowed == [4]


@pytest.mark.parametrize("new_vote", [None, ReplicaKey(3)])
@pytest.mark.parametrize("old", [RoleName.UNATTACHED, RoleName.PROSPECTIVE, RoleName.FOLLOWER])
@pytest.mark.parametrize("new", [RoleName.UNATTACHED, RoleName.PROSPECTIVE, RoleName.FOLLOWER])
def test_a_vote_lasts_as_long_as_its_epoch(
    old: RoleName, new: RoleName, new_vote: ReplicaKey | None
) -> None:
    assert not is_allowed(make(old, 3, voted=OTHER), make(new, 3, voted=new_vote))


def test_a_vote_may_be_noted_in_its_epoch() -> None:
    for name in (RoleName.UNATTACHED, RoleName.PROSPECTIVE):
        assert is_allowed(make(name, 3), make(name, 3, voted=OTHER))
        assert not is_allowed(make(name, 3), make(name, 3))


def test_an_epoch_has_one_leader() -> None:
    old = make(RoleName.UNATTACHED, 3, leader_id=2)
    assert is_allowed(old, make(RoleName.FOLLOWER, 3, leader_id=2))
    assert not is_allowed(old, make(RoleName.FOLLOWER, 3, leader_id=3))
    assert is_allowed(old, make(RoleName.FOLLOWER, 4, leader_id=3))


def test_a_leader_is_followed_again_only_for_more_endpoints() -> None:
    old = make(RoleName.FOLLOWER, 3)
    again = make(RoleName.FOLLOWER, 3)
    more = Follower(3, leader_id=2, leader_endpoints=MORE_ENDPOINTS, fetch_deadline=0)
    assert not is_allowed(old, again)
    assert is_allowed(old, more)


def test_no_node_follows_itself_or_one_without_an_address() -> None:
    old = make(RoleName.UNATTACHED, 3)
    assert not is_allowed(old, make(RoleName.FOLLOWER, 4, leader_id=1))
    assert not is_allowed(old, Follower(4, leader_id=2, leader_endpoints=(), fetch_deadline=0))


def test_only_a_lone_voter_goes_from_resigned_to_an_election() -> None:
    old, new = make(RoleName.RESIGNED, 3), make(RoleName.PROSPECTIVE, 3)
    assert is_allowed(old, new, is_only=True)
    assert not is_allowed(old, new)

"""An election: whose votes count, and when it is won or lost."""

from itertools import product

import pytest
from tests.unit.raft.core_builder import key_of, static_voters_of, voters_of

from kvorum.raft import ReplicaKey
from kvorum.raft.epoch_election import EpochElection


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_an_election_is_won_or_lost_exactly_when_no_answer_can_change_that(size: int) -> None:
    ids = range(1, size + 1)
    for answers in product([None, True, False], repeat=size - 1):
        tally = EpochElection(voters_of(*ids), own_key=key_of(1))
        for voter_id, answer in zip(ids[1:], answers, strict=True):
            if answer is not None:
                assert tally.record(key_of(voter_id), is_granted=answer)
        granted = 1 + answers.count(True)
        possible = granted + answers.count(None)
        assert tally.is_granted == (2 * granted > size)
        assert tally.is_rejected == (2 * possible <= size)
        assert not (tally.is_granted and tally.is_rejected)
        assert len(tally.granted) == granted
        assert len(tally.unrecorded) == answers.count(None)


def test_only_the_first_answer_of_a_voter_counts() -> None:
    tally = EpochElection(voters_of(1, 2, 3), own_key=key_of(1))
    assert tally.record(key_of(2), is_granted=False)
    assert not tally.record(key_of(2), is_granted=True)
    assert tally.granted == (key_of(1),)
    assert not tally.record(key_of(1), is_granted=False)
    assert tally.granted == (key_of(1),)


@pytest.mark.parametrize("own_key", [key_of(1), key_of(2, 9)])
def test_a_nominee_that_is_not_a_voter_has_no_vote(own_key: ReplicaKey) -> None:
    tally = EpochElection(voters_of(2, 3), own_key=own_key)
    assert tally.granted == ()
    assert not tally.record(own_key, is_granted=True)
    assert not tally.is_granted
    assert tally.record(key_of(2), is_granted=True)
    assert tally.record(key_of(3), is_granted=True)
    assert tally.is_granted


def test_a_voter_that_is_known_by_its_id_alone_has_its_vote_in_any_directory() -> None:
    tally = EpochElection(static_voters_of(1, 2, 3), own_key=key_of(1, 9))
    assert tally.granted == (ReplicaKey(1),)
    assert tally.record(ReplicaKey(2), is_granted=True)
    assert tally.is_granted


def test_a_lone_voter_has_won_at_once() -> None:
    assert EpochElection(voters_of(7), own_key=key_of(7)).is_granted

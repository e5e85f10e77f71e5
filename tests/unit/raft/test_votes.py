"""Every election of up to five voters, in every order of answers that matters."""

from __future__ import annotations

from itertools import product

import pytest

from kvorum.raft.votes import VoteTally


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_an_election_is_won_or_lost_exactly_when_no_answer_can_change_that(size: int) -> None:
    voters = range(1, size + 1)
    for answers in product([None, True, False], repeat=size - 1):
        tally = VoteTally(voters, own_id=1)
        for voter, answer in zip(voters[1:], answers, strict=True):
            if answer is not None:
                assert tally.record(voter, is_granted=answer)
        granted = 1 + answers.count(True)
        possible = granted + answers.count(None)
        assert tally.is_granted == (2 * granted > size)
        assert tally.is_rejected == (2 * possible <= size)
        assert not (tally.is_granted and tally.is_rejected)
        assert len(tally.granted) == granted
        assert len(tally.unrecorded) == answers.count(None)


def test_only_the_first_answer_of_a_voter_counts() -> None:
    tally = VoteTally([1, 2, 3], own_id=1)
    assert tally.record(2, is_granted=False)
    assert not tally.record(2, is_granted=True)
    assert tally.granted == (1,)
    assert not tally.record(1, is_granted=False)
    assert tally.granted == (1,)


def test_who_is_no_voter_has_no_vote() -> None:
    tally = VoteTally([2, 3], own_id=1)
    assert tally.granted == ()
    assert not tally.record(9, is_granted=True)
    assert not tally.is_granted
    assert tally.record(2, is_granted=True)
    assert tally.record(3, is_granted=True)
    assert tally.is_granted


def test_a_lone_voter_has_won_at_once() -> None:
    assert VoteTally([7], own_id=7).is_granted

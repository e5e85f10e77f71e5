"""Which controller acts in place of a leader that does not: the lowest id, and then that one."""

import pytest
from tests.unit.controller.quorums import described, key

from kvorum.controller.quorum_description import ReplicaState
from kvorum.controller.quorum_reassignment.next_step import BlockReason
from kvorum.controller.quorum_reassignment.turn import Situation, Turn, live_controllers
from kvorum.metadata.voter_key import VoterKey

DELAY_MS = 500
LIVE = (1, 3, 4)


def voters(*node_ids: int) -> frozenset[VoterKey]:
    return frozenset(map(key, node_ids))


def situation(
    *node_ids: int, text: str = "4,5,6", epoch: int = 1, waits_for: BlockReason | None = None
) -> Situation:
    return Situation(text, epoch, voters(*node_ids), waits_for)


NOW = situation(1, 2, 3)


@pytest.mark.parametrize(("node_id", "wait_ms"), [(1, 500), (3, 1000), (4, 1500), (9, 2000)])
def test_each_waits_longer_than_those_with_lower_ids(node_id: int, wait_ms: int) -> None:
    turn = Turn(node_id, delay_ms=DELAY_MS)
    assert not turn.has_come(NOW, LIVE, 0)
    assert not turn.has_come(NOW, LIVE, wait_ms - 1)
    assert turn.has_come(NOW, LIVE, wait_ms)


@pytest.mark.parametrize(
    "other",
    [
        situation(1, 2, 3, 4),
        situation(1, 2, 3, text="4,5"),
        situation(1, 2, 3, epoch=2),
        situation(1, 2, 3, waits_for=BlockReason.TARGET_LAGGING),
    ],
    ids=["voters", "target voters", "leader", "hindrance"],
)
def test_the_wait_begins_again_when_something_changes(other: Situation) -> None:
    turn = Turn(1, delay_ms=DELAY_MS)
    assert not turn.has_come(NOW, LIVE, 0)
    assert not turn.has_come(other, LIVE, 499)
    assert not turn.has_come(other, LIVE, 998)
    assert turn.has_come(other, LIVE, 999)


def test_time_in_which_nothing_could_be_done_does_not_count() -> None:
    waiting = situation(1, 2, 3, waits_for=BlockReason.TARGET_LAGGING)
    for turn in [Turn(node_id, delay_ms=DELAY_MS) for node_id in LIVE]:
        turn.has_come(waiting, LIVE, 0)
        assert turn.has_come(waiting, LIVE, 60_000)
        assert not turn.has_come(NOW, LIVE, 60_001)


def test_who_made_the_latest_change_goes_on_at_once() -> None:
    turn = Turn(4, delay_ms=DELAY_MS)
    turn.changed_voters(NOW, voters(1, 2, 3, 4))
    assert turn.has_come(situation(1, 2, 3, 4), LIVE, 0)
    assert turn.has_come(situation(1, 2, 3, 4, waits_for=BlockReason.TARGET_LAGGING), LIVE, 0)
    assert not turn.has_come(situation(1, 2, 4), LIVE, 0)
    assert not turn.has_come(situation(1, 2, 3, 4, text="4,5"), LIVE, 0)
    # A leader that is one of ours says so only a moment after its election.
    assert not turn.has_come(situation(1, 2, 3, 4, epoch=2), LIVE, 0)


def test_who_has_missed_waits_as_everybody_does() -> None:
    turn = Turn(1, delay_ms=DELAY_MS)
    turn.changed_voters(situation(1, 2), voters(1, 2, 3))
    assert turn.has_come(NOW, LIVE, 0)
    turn.missed()
    assert not turn.has_come(NOW, LIVE, 1000)
    assert turn.has_come(NOW, LIVE, 1500)


def test_live_are_the_controllers_that_fetch_and_not_the_leader() -> None:
    def state(node_id: int, age_ms: float | None) -> ReplicaState:
        return ReplicaState(key(node_id), 9, age_ms)

    quorum = described(
        2,
        voters=[state(1, 10), state(2, 0), state(3, 2000)],
        observers=[state(4, 1999), state(5, None), state(100, 10)],
    )
    assert live_controllers(quorum, range(1, 7), fetch_timeout_ms=2000) == {1, 4}

"""A reassignment of the quorum, as clients and metrics see it."""

from tests.unit.controller.quorums import described, key

from kvorum.controller.quorum_description import ReplicaState
from kvorum.controller.quorum_reassignment.description import (
    ReassignmentDescription,
    describe_reassignment,
)
from kvorum.controller.quorum_reassignment.next_step import Blocked, BlockReason
from kvorum.metadata.voter_key import VoterKey

LAGGING = Blocked(BlockReason.TARGET_LAGGING, "target 3 is behind")


def state(replica: VoterKey, log_end_offset: int) -> ReplicaState:
    return ReplicaState(replica, log_end_offset, last_fetch_age_ms=5.0)


ONE, TWO, THREE = state(key(1), 10), state(key(2), 9), state(key(3), 8)
QUORUM = described(1, [ONE, TWO], [THREE, state(key(5), 1), state(key(5, disk=1), 2)])


def shown(text: str, blocked: Blocked | None = None) -> ReassignmentDescription:
    return describe_reassignment(text, QUORUM, blocked, now_ms=77)


def test_targets_have_their_progress_and_are_counted() -> None:
    found = shown("1,3", LAGGING)
    assert found.targets == (ONE, THREE)
    assert (found.adding_count, found.removing_count) == (1, 1)
    assert (found.reason_code, found.block_text) == (5, "target 3 is behind")
    assert found.now_ms == 77


def test_a_reassignment_that_goes_on_has_no_reason() -> None:
    found = shown("1,3")
    assert (found.reason_code, found.block_text) == (0, "")


def test_a_target_that_is_not_known_has_its_id_alone() -> None:
    found = shown("1,2,4,5")
    nobody, either = ReplicaState(VoterKey(4), None, None), ReplicaState(VoterKey(5), None, None)
    assert found.targets == (ONE, TWO, nobody, either)
    assert (found.adding_count, found.removing_count) == (2, 0)


def test_an_unknown_directory_is_reported_without_progress() -> None:
    wanted = key(2, disk=1)
    found = shown(f"1,{wanted}")
    assert found.targets == (ONE, ReplicaState(wanted, None, None))
    assert (found.adding_count, found.removing_count) == (1, 1)


def test_a_value_that_cannot_be_read_is_the_reason() -> None:
    found = shown("one", LAGGING)
    assert found.targets == ()
    assert found.reason_code == BlockReason.UNREADABLE.value
    assert "'one' is no target voter" in found.block_text

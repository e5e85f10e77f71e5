"""A quorum and its reassignment as decisions, other nodes, clients and metrics see them."""

from dataclasses import replace

import pytest
from tests.unit.controller.quorums import described, directory, key

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    Blocked,
    BlockReason,
    Circumstances,
    Reached,
    next_step,
)
from kvorum.controller.quorum_reassignment.plan import (
    ReassignmentDescription,
    describe_reassignment,
)
from kvorum.controller.quorum_reassignment.pursuit import quorum_described_by
from kvorum.metadata.voters import VoterKey
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.uuid_text import ZERO_UUID

TIMEOUT_MS = 2000
LIVE, SILENT, NEVER = 300.0, 12_000.0, None
NOW_MS = 1_000_000
UNKNOWN = -1
LAGGING = Blocked(BlockReason.TARGET_LAGGING, "target 3 is behind")


def replica(node_id: int, disk: int = 0, age_ms: float | None = LIVE) -> ReplicaState:
    return ReplicaState(key(node_id, disk), 50, age_ms)


@pytest.mark.parametrize(
    ("voters", "observers", "kept"),
    [
        # A voter lives, or none has fetched.
        ([replica(1, 1)], [replica(1, age_ms=SILENT)], []),
        ([replica(1, 1)], [replica(1, age_ms=NEVER)], []),
        # Both live, or neither does.
        ([replica(1, 1)], [replica(1)], [replica(1)]),
        ([replica(1, 1, SILENT)], [replica(1, age_ms=SILENT)], [replica(1, age_ms=SILENT)]),
        # An observer lives.
        ([], [replica(3, age_ms=SILENT), replica(3, 1)], [replica(3, 1)]),
        # The leader lives.
        ([replica(2, 1, NEVER)], [replica(2, age_ms=SILENT)], []),
        # Another node lives.
        ([replica(1)], [replica(3, age_ms=SILENT)], [replica(3, age_ms=SILENT)]),
    ],
)
def test_an_observer_that_its_node_has_given_up_does_not_count(
    voters: list[ReplicaState], observers: list[ReplicaState], kept: list[ReplicaState]
) -> None:
    found = described(2, voters, observers).without_superseded(within_ms=TIMEOUT_MS)
    assert ([*found.voters], [*found.observers]) == (voters, kept)


def test_a_target_whose_node_has_joined_with_another_disk_is_reached() -> None:
    """The node asks to join by itself meanwhile, so its new directory is the voter."""
    quorum = described(2, [replica(1, 1), replica(2), replica(3)], [replica(1, age_ms=SILENT)])
    targets = (VoterKey(1), VoterKey(2), VoterKey(3))
    circumstances = Circumstances(
        controllers={},
        fetch_timeout_ms=TIMEOUT_MS,
        has_caught_up=lambda _: True,
        progress_text=lambda _: "",
    )
    unclear = next_step(targets, quorum, circumstances)
    assert isinstance(unclear, Blocked)
    assert unclear.reason is BlockReason.TARGET_AMBIGUOUS
    known = quorum.without_superseded(within_ms=TIMEOUT_MS)
    assert next_step(targets, known, circumstances) == Reached()


def told(
    node_id: int, *, end: int = 90, fetched_ms: int = NOW_MS - 10, is_known: bool = True
) -> DescribeQuorumResponse.ReplicaState:
    named = directory(node_id) if is_known else ZERO_UUID
    return DescribeQuorumResponse.ReplicaState(node_id, named, end, fetched_ms, UNKNOWN)


LEADER = told(2, end=100, fetched_ms=NOW_MS)


def read(
    *voters: DescribeQuorumResponse.ReplicaState,
    observers: tuple[DescribeQuorumResponse.ReplicaState, ...] = (),
    high_watermark: int = 95,
    committed: frozenset[VoterKey] | None = frozenset({key(1), key(2)}),
) -> QuorumDescription:
    answer = DescribeQuorumResponse.PartitionData(
        leader_id=2,
        leader_epoch=4,
        high_watermark=high_watermark,
        current_voters=list(voters),
        observers=list(observers),
    )
    return quorum_described_by(answer, kraft_version=1, committed_voters=committed)


def test_everything_that_a_decision_needs_is_read() -> None:
    assert read(told(1), LEADER, observers=(told(3, fetched_ms=NOW_MS - 700),)) == described(
        2,
        (ReplicaState(key(1), 90, 10.0), ReplicaState(key(2), 100, 0.0)),
        (ReplicaState(key(3), 90, 700.0),),
        log_end_offset=100,
    )


def test_a_replica_that_has_not_fetched_has_no_progress() -> None:
    silent = told(3, end=UNKNOWN, fetched_ms=UNKNOWN)
    assert read(told(1), LEADER, observers=(silent,)).observers == (
        ReplicaState(key(3), None, None),
    )


def test_a_fetch_since_the_answer_began_is_not_older_than_now() -> None:
    assert read(told(1, fetched_ms=NOW_MS + 1), LEADER).voters[0].last_fetch_age_ms == 0


def test_the_zero_uuid_means_an_unknown_directory() -> None:
    found = read(told(1), LEADER, observers=(told(3, is_known=False),))
    assert found.observers[0].key == VoterKey(3)


@pytest.mark.parametrize(
    "committed",
    [None, frozenset({key(1)}), frozenset({key(1), key(2), key(3)})],
    ids=["uncommitted", "before", "after"],
)
def test_voters_other_than_the_committed_ones_may_not_change(
    committed: frozenset[VoterKey] | None,
) -> None:
    found = read(told(1), LEADER, committed=committed)
    assert found == replace(read(told(1), LEADER), may_change=False)


def test_voters_may_not_change_while_the_leader_knows_no_high_watermark() -> None:
    assert not read(told(1), LEADER, high_watermark=UNKNOWN).may_change


def test_voters_may_not_change_under_a_leader_that_is_not_one_of_them() -> None:
    found = read(told(1), observers=(LEADER,), committed=frozenset({key(1)}))
    assert not found.may_change
    assert found.voters[0].last_fetch_age_ms is None


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

"""Which replicas of the quorum count, where a node is known with more than one directory."""

import pytest
from tests.unit.controller.quorums import described, key

from kvorum.controller.quorum_description import ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    Blocked,
    BlockReason,
    Circumstances,
    Reached,
    next_step,
)
from kvorum.metadata.voter_key import VoterKey

TIMEOUT_MS = 2000
LIVE, SILENT, NEVER = 300.0, 12_000.0, None


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

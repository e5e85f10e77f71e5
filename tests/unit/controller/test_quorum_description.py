"""Which replicas of the quorum count, where a node is known with more than one directory."""

import pytest

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
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


def key(node_id: int, directory: str = "a") -> VoterKey:
    return VoterKey(node_id, directory.encode() * 16)


def replica(node_id: int, directory: str = "a", age_ms: float | None = LIVE) -> ReplicaState:
    return ReplicaState(key(node_id, directory), 50, age_ms)


def described(*voters: ReplicaState, observers: tuple[ReplicaState, ...]) -> QuorumDescription:
    return QuorumDescription(
        leader_id=2,
        kraft_version=1,
        may_change=True,
        log_end_offset=50,
        voters=voters,
        observers=observers,
    )


@pytest.mark.parametrize(
    ("voters", "observers", "kept"),
    [
        pytest.param((replica(1, "b"),), (replica(1, age_ms=SILENT),), (), id="a voter lives"),
        pytest.param((replica(1, "b"),), (replica(1, age_ms=NEVER),), (), id="never fetched"),
        pytest.param((replica(1, "b"),), (replica(1),), (replica(1),), id="both live"),
        pytest.param(
            (replica(1, "b", SILENT),),
            (replica(1, age_ms=SILENT),),
            (replica(1, age_ms=SILENT),),
            id="none lives",
        ),
        pytest.param(
            (), (replica(3, age_ms=SILENT), replica(3, "b")), (replica(3, "b"),), id="an observer"
        ),
        pytest.param(
            (replica(2, "b", NEVER),), (replica(2, age_ms=SILENT),), (), id="the leader lives"
        ),
        pytest.param(
            (replica(1),), (replica(3, age_ms=SILENT),), (replica(3, age_ms=SILENT),), id="another"
        ),
    ],
)
def test_an_observer_that_its_node_has_given_up_does_not_count(
    voters: tuple[ReplicaState, ...],
    observers: tuple[ReplicaState, ...],
    kept: tuple[ReplicaState, ...],
) -> None:
    quorum = described(*voters, observers=observers)
    found = quorum.without_superseded(within_ms=TIMEOUT_MS)
    assert (found.voters, found.observers) == (voters, kept)


def test_a_target_whose_node_has_joined_with_another_disk_is_reached() -> None:
    """The node asks to join by itself meanwhile, so its new directory is the voter."""
    quorum = described(
        replica(1, "b"), replica(2), replica(3), observers=(replica(1, age_ms=SILENT),)
    )
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

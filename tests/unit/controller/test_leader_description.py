"""The quorum as another node's answer describes it, in the form that decisions are made from."""

from dataclasses import replace

import pytest
from tests.unit.controller.quorums import described, directory, key

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.turn import quorum_described_by
from kvorum.metadata.voter_key import VoterKey
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.uuid_text import ZERO_UUID

NOW_MS = 1_000_000
UNKNOWN = -1


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

"""The replica that a consumer in a rack reads from."""

import pytest

from kvorum.broker.replica_selector import PartitionView, RackAwareReplicaSelector, ReplicaView

LEADER = ReplicaView(1, "a", 100, 0.0)


def selected(rack_id: str, *followers: ReplicaView) -> int:
    view = PartitionView((*followers, LEADER), LEADER)
    return RackAwareReplicaSelector().select(rack_id, view).broker_id


@pytest.mark.parametrize(("rack_id", "expected"), [("", 1), ("a", 1), ("b", 3), ("c", 1)])
def test_a_follower_in_the_rack_comes_before_a_leader_elsewhere(
    rack_id: str, expected: int
) -> None:
    followers = ReplicaView(2, "a", 100, 0.0), ReplicaView(3, "b", 90, 5.0)
    assert selected(rack_id, *followers) == expected


def test_a_broker_without_a_rack_is_in_no_rack() -> None:
    assert selected("", ReplicaView(2, "", 100, 0.0), ReplicaView(3, None, 100, 0.0)) == 1


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (ReplicaView(3, "b", 91, 9.0), 3),
        (ReplicaView(3, "b", 90, 4.0), 3),
        (ReplicaView(3, "b", 90, 6.0), 2),
        (ReplicaView(3, "b", 90, 5.0), 3),
        (ReplicaView(3, "b", 89, 0.0), 2),
    ],
)
def test_of_a_rack_the_longest_log_then_who_was_caught_up_last(
    other: ReplicaView, expected: int
) -> None:
    assert selected("b", ReplicaView(2, "b", 90, 5.0), other) == expected

"""The replica that serves a client: the leader, a follower that it knows of, one in its rack."""

import pytest
from tests.unit.broker.fetcher.replicas import WALL_MS, Replicas

from kvorum.broker.partition import IsolationLevel
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.replica_selector import PartitionView, RackAwareReplicaSelector, ReplicaView
from kvorum.wire.error_codes import ErrorCode

LEADER = ReplicaView(1, "a", 100, 0.0)


@pytest.fixture
def world() -> Replicas:
    """Replica 1 leads, and all have two committed records."""
    world = Replicas()
    world.lead(1)
    world.all[1].write(b"a", b"b")
    world.copy(1, 2, 3)
    return world


@pytest.mark.parametrize("is_leader_needed", [True, False])
def test_only_clients_that_know_of_followers_read_from_one(
    world: Replicas, is_leader_needed: bool
) -> None:
    """KAFKA-9004: others would go on with a follower, and never come back to the leader."""

    def read() -> int:
        found = world.all[2].partition.fetch_records(
            0,
            1000,
            isolation=IsolationLevel.READ_UNCOMMITTED,
            leader_epoch=world.leader_epoch,
            is_leader_needed=is_leader_needed,
        )
        return len(found.records)

    if is_leader_needed:
        with pytest.raises(LeaderRefusesError) as refused:
            read()
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        assert read() > 0


def test_only_the_leader_deletes_records(world: Replicas) -> None:
    """KAFKA-6046."""
    leader, follower = world.all[1].partition, world.all[2].partition
    with pytest.raises(LeaderRefusesError) as refused:
        follower.delete_records(1, now_ms=WALL_MS)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert follower.log.local_log.log_start_offset == 0
    leader.delete_records(1, now_ms=WALL_MS)
    assert leader.log.local_log.log_start_offset == 1


def test_a_new_leader_knows_the_end_when_it_has_heard_of_its_predecessors_records(
    world: Replicas,
) -> None:
    """KIP-207."""
    world.all[1].write(b"c")
    world.all[2].fetch_from(world.all[1])
    world.lead(2)
    leader = world.all[2].partition
    assert not leader.is_offset_available
    world.all[2].write(b"d")
    world.copy(2, 1)
    assert not leader.is_offset_available
    # From here on all have the records of the epochs before, though not all of this one's.
    world.all[2].write(b"e")
    world.all[3].fetch_from(world.all[2])
    world.all[3].fetch_from(world.all[2])
    assert leader.log.high_watermark < leader.log.local_log.log_end_offset
    assert leader.is_offset_available


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

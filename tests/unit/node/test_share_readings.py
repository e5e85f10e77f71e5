"""The measures of a leader: of share partitions, and of fetches and acknowledgements of groups."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.node.share_fetch_world import (
    ALICE,
    BOB,
    GROUP,
    LOCK_MS,
    PARTITION,
    ShareWorld,
    answered,
    is_never_at_hand,
)

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType, ShareAcknowledgementBatch
from kvorum.broker.share_partition.acquisition import ShareAcquireMode
from kvorum.node.broker.dead_letter_queue.dead_letter_metrics import DeadLetterMetrics
from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.broker.share_fetch.share_group_metrics import ShareGroupMetrics
from kvorum.node.metrics.sensors import Distribution
from kvorum.node.monitoring.share_readings import share_fetch_readings
from kvorum.wire.error_codes import ErrorCode

SHARE_PARTITION = (GROUP, "topic", "0")
ELSEWHERE = PARTITION._replace(partition=1)
"""A partition that another broker leads."""
NONE_YET = {"Accept": 0, "Release": 0, "Reject": 0, "Renew": 0}


@pytest.fixture
def world() -> ShareWorld:
    """Three committed records, each in a batch."""
    world = ShareWorld()
    world.write(b"a", b"b", b"c")
    return world


def readings(world: ShareWorld, name: str) -> Mapping[tuple[str, ...], Any]:
    """Return what a metric has for each set of labels."""
    found = share_fetch_readings(world.manager, world.purgatory)
    return {one.labels: one.value for one in found if one.metric.name == name}


def of_partition(world: ShareWorld, name: str) -> Any:
    """Return what a metric has for the one share partition."""
    (labels,) = readings(world, name)
    assert labels == SHARE_PARTITION
    return readings(world, name)[labels]


def of_group(world: ShareWorld, name: str) -> Distribution:
    (labels,) = readings(world, name)
    assert labels == (GROUP,)
    found: Distribution = readings(world, name)[labels]
    return found


def summed(found: Distribution) -> tuple[int, float]:
    """Return the number of values, and their sum."""
    return found.count, found.total


def acknowledged(world: ShareWorld) -> Mapping[str, int]:
    """Return the acknowledged records by the type."""
    return {
        kind: count for (kind,), count in readings(world, "RecordAcknowledgementsPerSec").items()
    }


def test_records_in_flight_and_their_batches_are_counted(world: ShareWorld) -> None:
    world.fetch(max_records=2)
    in_flight = "InFlightMessageCount", "InFlightBatchCount"
    assert [of_partition(world, name) for name in in_flight] == [2, 1]
    world.fetch(BOB)
    assert [of_partition(world, name) for name in in_flight] == [3, 2]
    world.acknowledging(0, 1)
    assert [of_partition(world, name) for name in in_flight] == [1, 1]


@pytest.mark.parametrize("mode", ShareAcquireMode)
def test_a_batch_is_measured_once_when_it_comes_into_flight(
    world: ShareWorld, mode: ShareAcquireMode
) -> None:
    world.fetching(mode=mode, max_wait_ms=1)
    assert summed(of_partition(world, "InFlightBatchMessageCount")) == (1, 3)
    world.acknowledging(0, 2, kind=AcknowledgeType.RELEASE)
    assert world.fetch(BOB).delivery_counts == {2}
    assert summed(of_partition(world, "InFlightBatchMessageCount")) == (1, 3)
    world.write(b"d")
    world.fetching(mode=mode, max_wait_ms=1)
    assert summed(of_partition(world, "InFlightBatchMessageCount")) == (2, 4)


def test_a_batch_of_which_some_records_are_delivered_is_measured_as_a_whole() -> None:
    world = ShareWorld()
    world.write_together(b"a", b"b", b"c")
    assert world.fetch(max_records=2).offsets == [0, 1]
    assert summed(of_partition(world, "InFlightBatchMessageCount")) == (1, 3)


def test_records_whose_locks_expire_are_counted(world: ShareWorld) -> None:
    world.fetch()
    world.acknowledging(0, 0)
    world.run(for_ms=LOCK_MS - 50)
    assert of_partition(world, "AcquisitionLockTimeoutPerSec") == 0
    world.run(for_ms=100)
    assert of_partition(world, "AcquisitionLockTimeoutPerSec") == 2


def test_the_time_of_a_fetch_lock_is_measured_and_its_share(
    world: ShareWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fetch(max_records=1)
    assert of_partition(world, "FetchLockTimeMs").count == 1
    assert summed(of_partition(world, "FetchLockRatio")) == (1, 100)
    world.run(for_ms=1000)
    log = world.leader.partition.log.local_log
    monkeypatch.setattr(type(log), "is_at_hand", is_never_at_hand)
    began_ms = world.events.now_ms
    reading = world.fetching(max_records=1, max_wait_ms=500)
    while not reading:
        world.run(for_ms=0.1)
    held = of_partition(world, "FetchLockTimeMs")
    assert held.count == 2
    assert 0 < held.total <= world.events.now_ms - began_ms
    percents = of_partition(world, "FetchLockRatio")
    assert percents.count == 2
    assert percents.total < 150


def test_a_fetch_lock_that_is_given_back_unused_is_measured_too(world: ShareWorld) -> None:
    world.new_manager(record_locks_max=3)
    world.fetch()
    before = of_partition(world, "FetchLockTimeMs").count
    world.fetching(BOB, max_wait_ms=0)
    assert of_partition(world, "FetchLockTimeMs").count == before + 2, "once at last, too"
    assert summed(of_group(world, "RequestTopicPartitionsFetchRatio")) == (2, 100)


def test_the_partitions_of_a_fetch_that_it_reads_are_measured(world: ShareWorld) -> None:
    world.fetching(partitions=[PARTITION, ELSEWHERE], max_wait_ms=1)
    world.run(for_ms=20)
    assert summed(of_group(world, "RequestTopicPartitionsFetchRatio")) == (1, 50)
    world.fetch(BOB)
    assert summed(of_group(world, "RequestTopicPartitionsFetchRatio")) == (2, 150)
    # As in Kafka, a fetch of which all is refused has no part in it.
    world.fetching(partitions=[ELSEWHERE], max_wait_ms=1)
    assert of_group(world, "RequestTopicPartitionsFetchRatio").count == 2


def test_a_fetch_that_reads_nothing_in_its_time_counts_for_zero(world: ShareWorld) -> None:
    world.keeper.is_held = True
    waiting = world.fetching(max_wait_ms=50)
    world.run(for_ms=60)
    assert answered(waiting).offsets == []
    assert summed(of_group(world, "RequestTopicPartitionsFetchRatio")) == (1, 0)


def test_the_wait_for_partitions_is_measured(world: ShareWorld) -> None:
    world.keeper.is_held = True
    world.fetching(max_wait_ms=500)
    world.run(for_ms=40)
    assert of_group(world, "TopicPartitionsAcquireTimeMs").count == 0
    world.keeper.release()
    world.run(for_ms=5)
    count, waited_ms = summed(of_group(world, "TopicPartitionsAcquireTimeMs"))
    assert count == 1
    assert 40 <= waited_ms <= 45


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_the_load_of_a_share_partition_is_measured(world: ShareWorld, error: ErrorCode) -> None:
    world.keeper.is_held = True
    world.keeper.read_error = error
    world.fetching(max_wait_ms=500)
    world.run(for_ms=40)
    world.fetching(BOB, max_wait_ms=500)
    assert summed(readings(world, "PartitionLoadTimeMs")[()]) == (0, 0)
    world.keeper.release()
    world.run(for_ms=5)
    count, loaded_ms = summed(readings(world, "PartitionLoadTimeMs")[()])
    assert count == 1
    assert 40 <= loaded_ms <= 45


def test_acknowledged_records_are_counted_by_type_once_they_are_written(world: ShareWorld) -> None:
    world.fetch()
    world.keeper.is_held = True
    batches = [
        ShareAcknowledgementBatch(0, 1, [AcknowledgeType.ACCEPT, AcknowledgeType.GAP]),
        ShareAcknowledgementBatch(2, 2, [AcknowledgeType.REJECT]),
    ]
    world.begin(world.manager.acknowledge(ALICE, {PARTITION: batches}))
    assert acknowledged(world) == NONE_YET
    world.keeper.release()
    world.run()
    assert acknowledged(world) == {**NONE_YET, "Accept": 1, "Reject": 1}
    world.write(b"d", b"e")
    world.fetch()
    world.acknowledging(3, 4, kind=AcknowledgeType.RENEW)
    world.acknowledging(3, 4, kind=AcknowledgeType.RELEASE)
    assert acknowledged(world) == {"Accept": 1, "Release": 2, "Reject": 1, "Renew": 2}


def test_acknowledgements_that_are_refused_are_not_counted(world: ShareWorld) -> None:
    world.fetch(ALICE)
    world.acknowledging(0, 2, member=BOB)
    assert acknowledged(world) == NONE_YET


def test_fetches_and_acknowledgements_are_counted_for_their_topics(world: ShareWorld) -> None:
    stats = world.leader.topic_stats
    for partitions in ([PARTITION, ELSEWHERE], [PARTITION], [ELSEWHERE]):
        world.fetching(partitions=partitions, max_wait_ms=1)
        world.run(for_ms=20)
    world.acknowledging(0, 0)
    world.acknowledging(1, 1, member=BOB)
    for counts in (stats.all_topics, stats.topics["topic"]):
        assert counts.total_share_fetch_requests == 3
        assert counts.failed_share_fetch_requests == 2
        assert counts.total_fetch_requests == 2, "what is led elsewhere is not read"
        assert counts.total_share_acknowledgement_requests == 2
        assert counts.failed_share_acknowledgement_requests == 1


def test_a_fetch_whose_time_is_up_has_expired(world: ShareWorld) -> None:
    world.fetch()
    assert readings(world, "ExpiresPerSec") == {(): 0}
    world.fetch(BOB)
    assert readings(world, "ExpiresPerSec") == {(): 1}
    world.fetching(BOB, max_wait_ms=0)
    assert readings(world, "ExpiresPerSec") == {(): 2}


def test_what_another_broker_leads_has_no_values_here(world: ShareWorld) -> None:
    world.fetch()
    world.acknowledging(0, 0)
    assert readings(world, "FetchLockTimeMs")
    world.replicas.lead(2)
    world.run(for_ms=5)
    for name in ("InFlightMessageCount", "FetchLockTimeMs", "TopicPartitionsAcquireTimeMs"):
        assert not readings(world, name)
    assert acknowledged(world)["Accept"] == 1


def test_a_group_has_values_until_its_last_share_partition_is_gone() -> None:
    metrics = ShareGroupMetrics()
    metrics.add_partition(GROUP)
    metrics.add_partition(GROUP)
    metrics.remove_partition(GROUP)
    assert metrics.groups.keys() == {GROUP}
    metrics.remove_partition(GROUP)
    assert not metrics.groups


def test_dead_letters_are_counted_for_the_groups_that_have_had_some(world: ShareWorld) -> None:
    names = (
        "DeadLetterQueueRecordCount",
        "DeadLetterQueueTotalProduceRequestsPerSec",
        "DeadLetterQueueFailedProduceRequestsPerSec",
    )
    assert not any(readings(world, name) for name in names)
    world.dead_letters.metrics[GROUP] = DeadLetterMetrics(
        written_record_count=5, produce_count=3, failed_produce_count=1
    )
    assert [readings(world, name) for name in names] == [{(GROUP,): one} for one in (5, 3, 1)]


def test_a_broker_without_members_has_the_counts_of_all_groups_alone(world: ShareWorld) -> None:
    found = share_fetch_readings(None, DelayedOperationPurgatory(world.runtime))
    assert {one.metric.name for one in found} == {
        "ExpiresPerSec",
        "RecordAcknowledgementsPerSec",
        "PartitionLoadTimeMs",
    }

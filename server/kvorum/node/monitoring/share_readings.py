"""The current values of the metrics of share groups' records, on their leaders and in their state.

Before a broker has led such a record, or kept such a state, all counts are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.broker.share_coordinator.share_coordinator_metrics import ShareCoordinatorMetrics
from kvorum.node.broker.share_fetch.share_group_metrics import ShareGroupMetrics
from kvorum.node.metrics import share_catalogue
from kvorum.node.metrics.names import Reading

if TYPE_CHECKING:
    from kvorum.node.broker.dead_letter_queue.dead_letter_metrics import DeadLetterMetrics
    from kvorum.node.broker.share_coordinator.share_coordinator_service import (
        ShareCoordinatorService,
    )
    from kvorum.node.broker.share_fetch.led_share_partition import LedSharePartition
    from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager


def share_session_readings(manager: SharePartitionManager | None) -> Iterator[Reading]:
    """Yield the counts of share sessions."""
    sessions = None if manager is None else manager.sessions
    group = share_catalogue.SESSIONS
    rates = share_catalogue.SESSION_RATES
    yield group.reading("ShareSessionsCount", 0 if sessions is None else len(sessions))
    partition_count = 0 if sessions is None else sessions.partition_count
    yield group.reading("SharePartitionsCount", partition_count)
    eviction_count = 0 if sessions is None else sessions.eviction_count
    yield rates.reading("ShareSessionEvictionsPerSec", eviction_count)


def share_fetch_readings(
    manager: SharePartitionManager | None, purgatory: DelayedOperationPurgatory
) -> Iterator[Reading]:
    """Yield the values of fetches and acknowledgements, of their groups, and of share partitions.

    A group or a share partition has values for as long as this broker leads it for a member, and
    dead letters of a group are counted from its first one on.
    """
    yield share_catalogue.EXPIRATIONS.reading("ExpiresPerSec", purgatory.expired_count)
    metrics = ShareGroupMetrics() if manager is None else manager.metrics
    for kind, count in metrics.acknowledged_counts.items():
        yield share_catalogue.ACKNOWLEDGEMENTS.reading(
            "RecordAcknowledgementsPerSec", count, kind.name.capitalize()
        )
    load_times = metrics.partition_load_times_ms.distribution()
    yield share_catalogue.PARTITION_LOADS.reading("PartitionLoadTimeMs", load_times)
    group = share_catalogue.GROUP_FETCHES
    for group_id, fetches in metrics.groups.items():
        percents = fetches.fetched_percents.distribution()
        yield group.reading("RequestTopicPartitionsFetchRatio", percents, group_id)
        times = fetches.acquire_times_ms.distribution()
        yield group.reading("TopicPartitionsAcquireTimeMs", times, group_id)
    if manager is None:
        return
    yield from _dead_letters(manager.dead_letter_queue.metrics)
    for led in manager.partitions:
        yield from _share_partition(led)


def _dead_letters(metrics: Mapping[str, DeadLetterMetrics]) -> Iterator[Reading]:
    group = share_catalogue.DEAD_LETTERS
    for group_id, counts in metrics.items():
        for name, count in (
            ("DeadLetterQueueRecordCount", counts.written_record_count),
            ("DeadLetterQueueTotalProduceRequestsPerSec", counts.produce_count),
            ("DeadLetterQueueFailedProduceRequestsPerSec", counts.failed_produce_count),
        ):
            yield group.reading(name, count, group_id)


def _share_partition(led: LedSharePartition) -> Iterator[Reading]:
    topic, index = led.replica.topic_partition
    labels = (led.key.group_id, topic, index)
    records = led.state.records
    metrics = led.metrics
    group = share_catalogue.PARTITIONS
    values = share_catalogue.PARTITION_VALUES
    yield group.reading("InFlightMessageCount", records.record_count, *labels)
    yield group.reading("InFlightBatchCount", len(records.batches), *labels)
    yield share_catalogue.PARTITION_RATES.reading(
        "AcquisitionLockTimeoutPerSec", metrics.expired_record_count, *labels
    )
    for name, latest in (
        ("InFlightBatchMessageCount", metrics.new_batch_sizes),
        ("FetchLockTimeMs", metrics.fetch_lock_times_ms),
        ("FetchLockRatio", metrics.fetch_lock_percents),
    ):
        yield values.reading(name, latest.distribution(), *labels)


def share_state_readings(
    service: ShareCoordinatorService | None, now_ms: float
) -> Iterator[Reading]:
    """Yield the values of a share coordinator's writes and deletions."""
    group = share_catalogue.WRITES
    metrics = ShareCoordinatorMetrics(now_ms) if service is None else service.metrics
    yield group.reading("write-rate", metrics.writes.rate_per_second(now_ms))
    yield group.reading("write-total", metrics.write_count)
    yield group.reading("write-latency-avg", metrics.write_times_ms.average(now_ms))
    yield group.reading("write-latency-max", metrics.write_times_ms.maximum(now_ms))
    if service is None:
        return
    for (topic, index), offset in service.pruned_offsets.items():
        yield share_catalogue.PRUNES.reading("last-pruned-offset", offset, topic, index)

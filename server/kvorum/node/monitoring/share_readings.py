"""The current values of the metrics of share groups' records, on their leaders and in their state.

Before a broker has led such a record, or kept such a state, all counts are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvorum.node.broker.share_coordinator.share_coordinator_metrics import ShareCoordinatorMetrics
from kvorum.node.metrics import share_catalogue
from kvorum.node.metrics.names import Reading

if TYPE_CHECKING:
    from kvorum.node.broker.share_coordinator.share_coordinator_service import (
        ShareCoordinatorService,
    )
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


def share_state_readings(
    service: ShareCoordinatorService | None, now_ms: float
) -> Iterator[Reading]:
    """Yield the values of a share coordinator's writes."""
    group = share_catalogue.WRITES
    metrics = ShareCoordinatorMetrics(now_ms) if service is None else service.metrics
    yield group.reading("write-rate", metrics.writes.rate_per_second(now_ms))
    yield group.reading("write-total", metrics.write_count)
    yield group.reading("write-latency-avg", metrics.write_times_ms.average(now_ms))
    yield group.reading("write-latency-max", metrics.write_times_ms.maximum(now_ms))

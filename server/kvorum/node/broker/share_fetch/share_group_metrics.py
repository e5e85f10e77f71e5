"""The measures of share groups on the leaders of their partitions (Kafka's ShareGroupMetrics)."""

from collections.abc import Iterable
from typing import Final

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType, ShareAcknowledgementBatch
from kvorum.node.metrics.sensors import LatestValues

COUNTED_TYPES: Final = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)
"""The types of acknowledgements that are counted: a gap says nothing of a record."""
PERCENT: Final = 100


class ShareGroupFetchMetrics:
    """The fetches of one group."""

    def __init__(self) -> None:
        self.partition_count = 0
        """The share partitions of the group on this broker."""
        self.fetched_percents = LatestValues()
        """The share of each fetch's partitions that it had the fetch locks of."""
        self.acquire_times_ms = LatestValues()
        """The times that fetches waited for fetch locks."""

    def record_fetch(self, *, acquired_count: int, requested_count: int) -> None:
        """Record the number of a fetch's partitions that it reads, of those it asks for."""
        # The order of the operations is Kafka's, whose rounding it has.
        self.fetched_percents.record(int(acquired_count / requested_count * PERCENT))


class ShareGroupMetrics:
    """The acknowledgements and loads of all groups, and the fetches of each.

    Unlike in Kafka, a group's fetches are forgotten with its last share partition here.
    """

    def __init__(self) -> None:
        self.acknowledged_counts = dict.fromkeys(COUNTED_TYPES, 0)
        """The records that were acknowledged, by type."""
        self.partition_load_times_ms = LatestValues()
        """The times until the states of share partitions were read, or could not be."""
        self.groups: dict[str, ShareGroupFetchMetrics] = {}
        """The fetches of each group; to be read only."""

    def add_partition(self, group_id: str) -> None:
        """Take note of another share partition of a group."""
        self.groups.setdefault(group_id, ShareGroupFetchMetrics()).partition_count += 1

    def remove_partition(self, group_id: str) -> None:
        """Take note that there is one less of those that were added."""
        metrics = self.groups[group_id]
        metrics.partition_count -= 1
        if not metrics.partition_count:
            del self.groups[group_id]

    def record_acknowledgements(self, batches: Iterable[ShareAcknowledgementBatch]) -> None:
        """Count the records of acknowledgements that were taken."""
        for first_offset, last_offset, types in batches:
            count = last_offset - first_offset + 1 if len(types) == 1 else 1
            for number in types:
                kind = AcknowledgeType(number)
                if kind in self.acknowledged_counts:
                    self.acknowledged_counts[kind] += count

"""The measures of one share partition on its leader (Kafka's SharePartitionMetrics)."""

from collections.abc import Iterable

from kvorum.broker.share_partition.fetch_lock import FetchLockUse
from kvorum.node.metrics.sensors import LatestValues


class SharePartitionMetrics:
    """The measures that are taken at events; what is in flight, the share partition tells."""

    def __init__(self) -> None:
        self.expired_record_count = 0
        """The records whose acquisition locks have expired."""
        self.new_batch_sizes = LatestValues()
        """The number of records of each batch, when it was put into flight."""
        self.fetch_lock_times_ms = LatestValues()
        self.fetch_lock_percents = LatestValues()
        """The share of each of these times in the time since the fetch before."""

    def record_fetch_lock(self, use: FetchLockUse) -> None:
        """Record how a fetch has used the fetch lock."""
        self.fetch_lock_times_ms.record(use.held_ms)
        if use.percent is not None:
            self.fetch_lock_percents.record(use.percent)

    def record_new_batches(self, sizes: Iterable[int]) -> None:
        """Record the batches that a fetch has put into flight."""
        for size in sizes:
            self.new_batch_sizes.record(size)

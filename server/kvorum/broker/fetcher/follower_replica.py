"""The replica that a fetcher writes to, and the one that is a partition of this broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kvorum.broker.partition import NO_EPOCH, EpochEndOffset, Partition
from kvorum.storage.topic_log.unified_log import UnifiedLog


class FollowerReplica(Protocol):
    """The log of a follower, as far as fetching and truncating need it."""

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record."""
        ...

    @property
    def log_end_offset(self) -> int:
        """The offset behind the last record."""
        ...

    @property
    def high_watermark(self) -> int:
        """The offset below which every record is known to be committed."""
        ...

    @property
    def latest_epoch(self) -> int:
        """The latest leader epoch that the log knows, -1 without one."""
        ...

    def end_of_epoch(self, epoch: int) -> EpochEndOffset:
        """Return the largest epoch not above `epoch` and where it ends, (-1, -1) if unknown."""
        ...

    def append(self, records: bytes | memoryview, *, leader_epoch: int) -> int | None:
        """Append batches up to `leader_epoch`; return the epoch of the last one, None for none."""
        ...

    def follow_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's high watermark and the start of its log."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Remove the records from `offset` on."""
        ...

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records, and go on at `offset`."""
        ...


class PartitionReplica:
    """A partition of this broker as a fetcher's replica; `wall_ms` returns the time of day."""

    def __init__(self, partition: Partition, wall_ms: Callable[[], int]) -> None:
        self._partition = partition
        self._wall_ms = wall_ms

    @property
    def _log(self) -> UnifiedLog:
        # A replica that moves to another directory gets another log.
        return self._partition.log

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record."""
        return self._log.local_log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset behind the last record."""
        return self._log.local_log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """The offset below which every record is known to be committed."""
        return self._log.high_watermark

    @property
    def latest_epoch(self) -> int:
        """The latest leader epoch that the log knows, -1 without one."""
        epoch = self._log.local_log.latest_epoch
        return NO_EPOCH if epoch is None else epoch

    def end_of_epoch(self, epoch: int) -> EpochEndOffset:
        """Return the largest epoch not above `epoch` and where it ends, (-1, -1) if unknown."""
        return self._partition.last_offset_for_epoch(epoch)

    def append(self, records: bytes | memoryview, *, leader_epoch: int) -> int | None:
        """Append batches up to `leader_epoch`; return the epoch of the last one, None for none."""
        last = self._partition.append_records_to_follower(
            records, leader_epoch=leader_epoch, wall_ms=self._wall_ms()
        )
        return None if last is None else last.partition_leader_epoch

    def follow_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's high watermark and the start of its log."""
        self._partition.follow_leader(high_watermark, log_start_offset, wall_ms=self._wall_ms())

    def truncate_to(self, offset: int) -> None:
        """Remove the records from `offset` on."""
        self._log.truncate_to(offset, now_ms=self._wall_ms())

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records, and go on at `offset`."""
        self._log.truncate_fully_and_start_at(offset, now_ms=self._wall_ms())

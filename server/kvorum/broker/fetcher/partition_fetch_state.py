"""The progress of a follower in fetching one partition, and where its log is cut off."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from kvorum.broker.partition import NO_EPOCH, EpochEndOffset, Partition, end_of_epoch
from kvorum.storage.log.local_log import LocalLog


def truncation_offset(leader: EpochEndOffset, log: LocalLog, *, fallback: int) -> int:
    """Return the offset to truncate to, where the leader says that the logs diverge.

    `leader` is the largest epoch of the leader that is not above this log's last one, and where
    it ends there. If this log has not that epoch but a smaller one, the logs may diverge before
    the result too: the next fetch finds out. `fallback` is for a leader that knows no offset.
    """
    end_offset = log.log_end_offset
    if leader.end_offset < 0:
        return fallback
    own = end_of_epoch(log, leader.epoch) if leader.epoch != NO_EPOCH else None
    if own is None or own.epoch == NO_EPOCH:
        return min(leader.end_offset, end_offset)
    if own.epoch != leader.epoch:
        return min(own.end_offset, end_offset)
    return min(own.end_offset, leader.end_offset, end_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFetchState:
    """The next offset to fetch, the leader epoch to fetch in, and when to go on after an error.

    `last_fetched_epoch` is the epoch of the last record, -1 without one. `is_truncating` means that
    the log knows no epoch: before the first fetch, it is truncated to the high watermark. `lag` is
    how far behind the leader's high watermark the last fetch has left the log, None before it.
    """

    partition: Partition
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    is_truncating: bool = False
    due_ms: float = 0.0
    lag: int | None = None

    @property
    def is_replica_in_sync(self) -> bool:
        """Whether the log was as long as what is committed after the last fetch."""
        return self.lag is not None and self.lag <= 0

    def is_ready(self, now_ms: float) -> bool:
        """Return whether the partition may be fetched."""
        return not self.is_truncating and self.due_ms <= now_ms

    def is_same_fetch(self, asked: PartitionFetchState) -> bool:
        """Return whether a fetch of the state `asked` is still the one that this state needs."""
        return (self.fetch_offset, self.leader_epoch) == (asked.fetch_offset, asked.leader_epoch)

    def at_end_of_log(self) -> Self:
        """Return the state after a truncation, or another change of the log."""
        log = self.partition.log.local_log
        return replace(
            self,
            fetch_offset=log.log_end_offset,
            last_fetched_epoch=NO_EPOCH if log.latest_epoch is None else log.latest_epoch,
            is_truncating=False,
        )

    def behind(self, last_epoch: int | None, high_watermark: int) -> Self:
        """Return the state after an append; without a record the last epoch stays as it is.

        `high_watermark` is the leader's.
        """
        end_offset = self.partition.log.local_log.log_end_offset
        return replace(
            self,
            fetch_offset=end_offset,
            lag=max(high_watermark - end_offset, 0),
            last_fetched_epoch=self.last_fetched_epoch if last_epoch is None else last_epoch,
        )


def initial_fetch_state(partition: Partition, leader_epoch: int) -> PartitionFetchState:
    """Return the state of a partition whose leader is new.

    A log that knows epochs is fetched from its end on: the leader finds where the two diverge.
    """
    log = partition.log
    epoch = log.local_log.latest_epoch
    is_truncating = epoch is None
    return PartitionFetchState(
        partition=partition,
        leader_epoch=leader_epoch,
        fetch_offset=log.high_watermark if is_truncating else log.local_log.log_end_offset,
        last_fetched_epoch=NO_EPOCH if epoch is None else epoch,
        is_truncating=is_truncating,
    )

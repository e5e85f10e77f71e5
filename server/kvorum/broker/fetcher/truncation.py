"""Up to where a follower keeps its log (AbstractFetcherThread.getOffsetTruncationState)."""

from __future__ import annotations

from typing import Protocol

from kvorum.broker.partition import NO_EPOCH, EpochEndOffset


class LogWithEpochs(Protocol):
    """The log of a replica that may have to be truncated."""

    @property
    def log_end_offset(self) -> int:
        """The offset behind the last record."""
        ...

    def end_of_epoch(self, epoch: int) -> EpochEndOffset:
        """Return the largest epoch not above `epoch` and where it ends, (-1, -1) if unknown."""
        ...


def truncation_offset(leader: EpochEndOffset, replica: LogWithEpochs, *, fallback: int) -> int:
    """Return the offset to truncate to, where the leader says that the logs diverge.

    `leader` is the largest epoch of the leader that is not above this replica's last one, and where
    it ends there. If this replica has not that epoch but a smaller one, the logs may diverge before
    the result too: the next fetch finds out. `fallback` is for a leader that knows no offset.
    """
    end_offset = replica.log_end_offset
    if leader.end_offset < 0:
        return fallback
    own = replica.end_of_epoch(leader.epoch) if leader.epoch != NO_EPOCH else None
    if own is None or own.epoch == NO_EPOCH:
        return min(leader.end_offset, end_offset)
    if own.epoch != leader.epoch:
        return min(own.end_offset, end_offset)
    return min(own.end_offset, leader.end_offset, end_offset)

"""The end of a leader epoch in a log, by which replicas find where their logs part (KIP-101)."""

from bisect import bisect_right
from typing import Final, NamedTuple

from kvorum.storage.log.local_log import LocalLog

NO_EPOCH: Final = -1


class EpochEndOffset(NamedTuple):
    """A leader epoch and the offset behind its last record, (-1, -1) for an unknown epoch."""

    epoch: int
    end_offset: int


def end_of_epoch(log: LocalLog, requested: int) -> EpochEndOffset:
    """Return a log's largest epoch not above `requested` and its end, (-1, -1) if unknown."""
    starts = log.epoch_starts
    if requested == NO_EPOCH or not starts or requested > starts[-1].epoch:
        return EpochEndOffset(NO_EPOCH, -1)
    if requested < starts[0].epoch:
        return EpochEndOffset(requested, starts[0].start_offset)
    above = bisect_right(starts, requested, key=lambda entry: entry.epoch)
    is_last = above == len(starts)
    end = log.log_end_offset if is_last else starts[above].start_offset
    return EpochEndOffset(starts[above - 1].epoch, end)


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

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

"""The rules for positions in a log: the end of an epoch, and the validity of another position.

Kafka's RaftLog.validateOffsetAndEpoch and endOffsetForEpoch, in one place for raft, which answers
fetches from its view of the log, and for storage, which names snapshots. One rule is ours: an epoch
that the log no longer knows is not accepted from another replica; see `_is_vouched_for`.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class EpochStart(NamedTuple):
    """A leader epoch and the offset of its first record: Kafka's EpochEntry."""

    epoch: int
    start_offset: int


class ValidityKind(Enum):
    """The relation of another replica's offset and epoch to a log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class ValidOffsetAndEpoch(NamedTuple):
    """The result for a position: continue there, truncate to it, or fetch that snapshot."""

    kind: ValidityKind
    offset_and_epoch: OffsetAndEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOutline:
    """The facts about a log that the rules need.

    `epochs` increase. The first may begin after the log's start: after a restart the log may begin
    before its first known epoch. `last_epoch` is that of the last record, of
    or else the latest snapshot, or 0.
    """

    start_offset: int
    end_offset: int
    last_epoch: int
    epochs: Sequence[EpochStart]
    snapshots: Collection[OffsetAndEpoch]


def end_offset_for_epoch(log: LogOutline, epoch: int) -> OffsetAndEpoch:
    """Return the largest epoch not above `epoch` and the offset where it ends.

    For an epoch above all of the log's, that is the log's end and last epoch. For one below all of
    them it is the earliest snapshot, if the first epoch begins after that, or else `epoch` itself
    and where the first begins.
    """
    above = bisect_right(log.epochs, epoch, key=lambda entry: entry.epoch)
    if above == len(log.epochs):
        return OffsetAndEpoch(log.end_offset, log.last_epoch)
    end_offset = log.epochs[above].start_offset
    if above > 0:
        return OffsetAndEpoch(end_offset, log.epochs[above - 1].epoch)
    earliest = min(log.snapshots, default=None)
    if earliest is not None and earliest.offset == end_offset:
        return earliest
    return OffsetAndEpoch(end_offset, epoch)


def validate_offset_and_epoch(log: LogOutline, position: OffsetAndEpoch) -> ValidOffsetAndEpoch:
    """Judge the position of another replica: its next offset, and the epoch of the record before.

    The result is the offset to continue at, the point of divergence, or the snapshot to fetch.
    """
    if log.start_offset == 0 and position.offset == 0:
        return ValidOffsetAndEpoch(ValidityKind.VALID, OffsetAndEpoch(0, 0))
    latest = max(log.snapshots, default=None)
    if latest is not None and _is_outside(log, position):
        return ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, latest)
    end = end_offset_for_epoch(log, position.epoch)
    if end.epoch != position.epoch or end.offset < position.offset:
        return ValidOffsetAndEpoch(ValidityKind.DIVERGING, end)
    if latest is not None and not _is_vouched_for(log, position):
        return ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, latest)
    return ValidOffsetAndEpoch(ValidityKind.VALID, position)


def _is_outside(log: LogOutline, position: OffsetAndEpoch) -> bool:
    """Return whether a position lies below the log's start, by its offset or its epoch."""
    earliest = min(log.snapshots)
    return (
        position.offset < log.start_offset
        or (position.offset == log.start_offset and position.epoch != earliest.epoch)
        or position.epoch < earliest.epoch
    )


def _is_vouched_for(log: LogOutline, position: OffsetAndEpoch) -> bool:
    """Return whether this log knows the epoch of the record before `position`.

    The start of the first epoch is lost when the log's start moves. After a restart the log may
    begin before the first known epoch, and then only a snapshot that ends right there proves the
    epoch. Kafka accepts the epoch that the other replica sends.
    """
    is_within = bool(log.epochs) and position.offset > log.epochs[0].start_offset
    return is_within or position in log.snapshots

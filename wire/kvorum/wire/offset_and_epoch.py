"""A place in a log with the leader epoch before it: Kafka's OffsetAndEpoch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OffsetAndEpoch:
    """An offset, and the leader epoch of the record before it.

    A log's end in votes and fetches, where two logs diverge, or a snapshot by its end. The order is
    Kafka's: the epoch decides, and the offset where epochs are equal. So of two logs, or of two
    snapshots, the greater one is further.
    """

    offset: int
    epoch: int

    def __lt__(self, other: OffsetAndEpoch) -> bool:
        return (self.epoch, self.offset) < (other.epoch, other.offset)

    def __le__(self, other: OffsetAndEpoch) -> bool:
        return (self.epoch, self.offset) <= (other.epoch, other.offset)

    def __gt__(self, other: OffsetAndEpoch) -> bool:
        return other < self

    def __ge__(self, other: OffsetAndEpoch) -> bool:
        return other <= self


BOOTSTRAP_SNAPSHOT_ID = OffsetAndEpoch(0, 0)
"""The snapshot that formatting a directory leaves: it holds the first voters and no records."""

"""The offsets of a log that a replica has, as far as is known while the log is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvorum.spark.pipeline.replicas import Replica

ENDLESS: Final = 2**63 - 1


class Hole(NamedTuple):
    """Offsets that cannot be read from a replica, from `first_offset` up to `end_offset`."""

    first_offset: int
    end_offset: int


@dataclass(slots=True)
class ReadableReplica:
    """A replica, the offset at which it ends, and what turned out not to be readable."""

    replica: Replica
    end_offset: int
    holes: list[Hole] = field(default_factory=list[Hole])

    def has(self, offset: int) -> bool:
        """Return whether the record at this offset is expected to be readable here."""
        start = self.replica.start_offset
        if start is None or not start <= offset < self.end_offset:
            return False
        return not any(hole.first_offset <= offset < hole.end_offset for hole in self.holes)

    def next_after(self, offset: int) -> int:
        """Return the lowest offset behind `offset` at which this replica has something again."""
        starts = [self.replica.start_offset or 0, *(hole.end_offset for hole in self.holes)]
        return min((each for each in starts if each > offset and self.has(each)), default=ENDLESS)

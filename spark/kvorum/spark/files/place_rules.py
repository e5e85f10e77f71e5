"""The rules for the place of a sound batch: its offset and epoch fit those of its neighbours.

A batch's checksum covers neither its offset nor its epoch. For a log without gaps the rules are:

1. a batch begins where the one before it ended; the first where the file's name says;
2. its epoch is not lower than the one before it, and not higher than the one after it;
3. it ends before the offset where the next range or the next segment begins;
4. where a batch begins too high, offsets are missing only if the batch behind continues it;
   otherwise its own offset is wrong, and its records are not handed out under wrong offsets;
5. the range ends at the offset where the next range or segment begins.

In a log with gaps, which compaction makes, rules 1, 4 and 5 ask only that offsets ascend.

Messages of the formats 0 and 1 have no epochs; the rules on offsets are the same for them.
"""

from __future__ import annotations

from kvorum.spark.files.batch_places import EntryHeader
from kvorum.spark.files.legacy_header import LegacyHeader
from kvorum.spark.files.neighbour import Neighbour
from kvorum.spark.files.ranges import UNKNOWN_OFFSET, FileRange
from kvorum.storage.log.batch_header import BatchHeader


class PlaceRules:
    """`offset` and `epoch` are those that the batches so far ask of the next one."""

    def __init__(self, unit: FileRange, *, has_gaps: bool) -> None:
        self.offset = unit.start.offset
        self.epoch = unit.start.epoch
        self._unit = unit
        self._has_gaps = has_gaps

    def begin_at(self, header: EntryHeader) -> None:
        """Take the first offset from the first batch, where nothing else says it."""
        if self.offset == UNKNOWN_OFFSET:
            self.offset = header.base_offset

    def problem(
        self, header: EntryHeader, behind: Neighbour, *, is_behind_damage: bool
    ) -> str | None:
        """Return why a sound batch does not belong where it is, or None."""
        first, end = header.base_offset, self._unit.end_offset
        if first < self.offset:
            return f"offset {first} follows {self.offset - 1}"
        if end is not None and header.next_offset > end:
            return f"offset {header.last_offset} is in the file that ends before {end}"
        if self._has_gaps:
            if behind.offset is not None and behind.offset < header.next_offset:
                return f"offset {header.last_offset} is followed by {behind.offset}"
        elif first > self.offset and not _is_confirmed(
            header, behind, is_behind_damage=is_behind_damage
        ):
            return f"offset {first} where {self.offset} belongs"
        if isinstance(header, LegacyHeader):
            return None
        return self._problem_of_epoch(header.leader_epoch, behind.epoch)

    def gap_before(self, first: int) -> str | None:
        """Return what is missing before a batch that begins at `first`, or None."""
        if self._has_gaps or first <= self.offset:
            return None
        return f"the batch behind offset {self.offset - 1} begins at {first}"

    def gap_at_end(self) -> str | None:
        """Return what is missing after the last batch of the range, or None."""
        end = self._unit.end_offset
        if end is None or self.offset >= end or self._has_gaps:
            return None
        place = "the next segment" if self._unit.is_last else "the next batch"
        return f"offset {self.offset - 1} is the last before {place}, of {end}"

    def follow(self, header: EntryHeader) -> None:
        """Ask of the next batch what this one says."""
        self.offset = header.next_offset
        if isinstance(header, BatchHeader):
            self.epoch = header.leader_epoch

    def _problem_of_epoch(self, epoch: int, behind: int | None) -> str | None:
        if epoch < self.epoch:
            return f"epoch {epoch} follows {self.epoch}"
        if behind is not None and self.epoch <= behind < epoch:
            return f"epoch {epoch} is followed by {behind}"
        return None


def _is_confirmed(header: EntryHeader, behind: Neighbour, *, is_behind_damage: bool) -> bool:
    """Return whether the offset of a batch that begins too high can be believed.

    Behind damage that is known it is enough that nothing speaks against it.
    """
    if behind.offset is None:
        return is_behind_damage
    return behind.offset == header.next_offset

"""The places of a segment's batches, as the indexes must have them; in arrays, for large ones."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from pathlib import Path
from typing import NamedTuple

from kvorum.wire.records import RecordBatch
from kvorum.wire.records.legacy import Entry


class BatchPlace(NamedTuple):
    """One batch; `latest_timestamp` is the largest of the segment up to the batch before it."""

    position: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    earlier_timestamp: int


class SegmentBatches:
    """The sound batches of one segment; those from `damaged_from` on cannot all be known."""

    def __init__(self, path: Path, base_offset: int, *, is_last: bool) -> None:
        self.path = path
        self.base_offset = base_offset
        self.is_last = is_last
        self.damaged_from: int | None = None
        self._positions = array("q")
        self._base_offsets = array("q")
        self._last_offsets = array("q")
        self._max_timestamps = array("q")
        self._latest_timestamps = array("q")

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def latest_timestamp(self) -> int:
        """The largest timestamp of all batches; -1 without one."""
        return self._latest_timestamps[-1] if self._latest_timestamps else -1

    def add(self, entry: Entry) -> None:
        """Take in the next batch, or message of an old format."""
        if isinstance(entry, RecordBatch):
            first, timestamp = entry.base_offset, entry.max_timestamp
        else:
            # A message that wraps others has the offset of the last one only.
            first = self._last_offsets[-1] + 1 if self._last_offsets else self.base_offset
            timestamp = entry.timestamp
        latest = self._latest_timestamps[-1] if self._latest_timestamps else -1
        self._positions.append(entry.position)
        self._base_offsets.append(first)
        self._last_offsets.append(entry.last_offset)
        self._max_timestamps.append(timestamp)
        self._latest_timestamps.append(max(latest, timestamp))

    def note_damage(self, position: int) -> None:
        """Remember where the first damage is."""
        if self.damaged_from is None:
            self.damaged_from = position

    def at_position(self, position: int) -> BatchPlace | None:
        """Return the batch that begins at `position`, or None."""
        index = bisect_left(self._positions, position)
        if index == len(self._positions) or self._positions[index] != position:
            return None
        return self._place(index)

    def holding(self, offset: int) -> BatchPlace | None:
        """Return the first batch whose last offset is `offset` or above, or None."""
        index = bisect_left(self._last_offsets, offset)
        return None if index == len(self._last_offsets) else self._place(index)

    def ends_with(self, offset: int) -> bool:
        """Return whether `offset` is the last one of some batch."""
        found = self.holding(offset)
        return found is not None and found.last_offset == offset

    def _place(self, index: int) -> BatchPlace:
        return BatchPlace(
            self._positions[index],
            self._base_offsets[index],
            self._last_offsets[index],
            self._max_timestamps[index],
            self._latest_timestamps[index - 1] if index else -1,
        )

"""The .timeindex file of a segment: from a timestamp to an offset.

Entries of 12 bytes: the highest timestamp so far (int64), the offset, relative to the segment's
base, of the last record of the batch that has it (int32). Timestamps strictly increase.
Derived data, as the offset index is.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left

_ENTRY = struct.Struct(">qi")
ENTRY_SIZE = _ENTRY.size
NO_TIMESTAMP = -1


class TimeIndex:
    """The entries of one time index, in memory; `IndexFile` keeps them on disk."""

    def __init__(self, base_offset: int, *, size_bytes_max: int) -> None:
        self.base_offset = base_offset
        self._entries_max = size_bytes_max // ENTRY_SIZE
        self._timestamps = array("q")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def is_full(self) -> bool:
        """Whether only the slot is left that is kept for the last entry of a finished segment."""
        return len(self._timestamps) >= self._entries_max - 1

    @property
    def last(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; none is (NO_TIMESTAMP, base offset)."""
        if not self._timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self._timestamps[-1], self._offsets[-1]

    def add(self, *, timestamp: int, offset: int, is_last: bool = False) -> None:
        """Note the highest timestamp so far, if it is higher than the last one noted.

        `is_last` marks the entry that closes a segment, which may take the reserved slot.
        """
        has_room = len(self._timestamps) < self._entries_max if is_last else not self.is_full
        last_timestamp = self._timestamps[-1] if self._timestamps else NO_TIMESTAMP
        if has_room and timestamp > last_timestamp:
            self._timestamps.append(timestamp)
            self._offsets.append(offset)

    def truncate_to(self, offset: int) -> None:
        """Forget every entry for `offset` or above."""
        keep = bisect_left(self._offsets, offset)
        del self._timestamps[keep:]
        del self._offsets[keep:]

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number `first_entry` on."""
        base = self.base_offset
        return b"".join(
            _ENTRY.pack(timestamp, offset - base)
            for timestamp, offset in zip(
                self._timestamps[first_entry:], self._offsets[first_entry:], strict=True
            )
        )

"""The .timeindex file of a segment: from a timestamp to an offset.

Entries of 12 bytes: the highest timestamp so far (int64), the offset, relative to the segment's
base, of the last record of the batch that has it (int32). Timestamps strictly increase.
Derived data, as the offset index is.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from itertools import pairwise

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
        """Whether only the slot for the last entry of a finished segment is left."""
        return len(self._timestamps) >= self._entries_max - 1

    @property
    def last(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; (NO_TIMESTAMP, base offset) without one."""
        if not self._timestamps:
            return NO_TIMESTAMP, self.base_offset
        return self._timestamps[-1], self._offsets[-1]

    def offset_before(self, timestamp: int) -> int:
        """Return the offset of the last entry below `timestamp`, else the base offset.

        No record before that offset has `timestamp` or a later one.
        """
        slot = bisect_left(self._timestamps, timestamp) - 1
        return self.base_offset if slot < 0 else self._offsets[slot]

    def add(self, *, timestamp: int, offset: int, is_last: bool = False) -> None:
        """Add the highest timestamp so far, if it is higher than that of the last entry.

        `is_last` marks the entry that closes a segment, which may take the reserved slot.
        """
        has_room = len(self._timestamps) < self._entries_max if is_last else not self.is_full
        last_timestamp = self._timestamps[-1] if self._timestamps else NO_TIMESTAMP
        if has_room and timestamp > last_timestamp:
            self._timestamps.append(timestamp)
            self._offsets.append(offset)

    def load(self, data: bytes) -> bool:
        """Load the entries of a file; none unless all are complete and increasing."""
        is_whole = len(data) % ENTRY_SIZE == 0
        entries = list(_ENTRY.iter_unpack(data)) if is_whole else []
        if not all(a < c and b <= d for (a, b), (c, d) in pairwise([(NO_TIMESTAMP, 0), *entries])):
            is_whole, entries = False, []
        self._timestamps = array("q", (timestamp for timestamp, _ in entries))
        self._offsets = array("q", (self.base_offset + offset for _, offset in entries))
        return is_whole

    def truncate_to(self, offset: int) -> None:
        """Remove every entry for `offset` or above."""
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

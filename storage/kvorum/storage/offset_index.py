"""The .index file of a segment: from an offset to a place in the .log file.

Entries of 8 bytes: offset relative to the segment's base (int32), position (int32). Sparse: the
writer adds one about every 4096 bytes. Derived data: it is rebuilt from the segment at every start
and never believed.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right

_ENTRY = struct.Struct(">ii")
ENTRY_SIZE = _ENTRY.size


class OffsetIndex:
    """The entries of one offset index, in memory; `IndexFile` keeps them on disk."""

    def __init__(self, base_offset: int, *, size_bytes_max: int) -> None:
        self.base_offset = base_offset
        self._entries_max = size_bytes_max // ENTRY_SIZE
        self._offsets = array("q")
        self._positions = array("q")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no further entry fits."""
        return len(self._offsets) >= self._entries_max

    @property
    def last_offset(self) -> int:
        """The highest indexed offset; the segment's base offset while there is no entry."""
        return self._offsets[-1] if self._offsets else self.base_offset

    def add(self, *, offset: int, position: int) -> None:
        """Note that the batch whose last offset is `offset` starts at `position`.

        Left out where the index is full, or the offset is not above the last one: a sparse index
        is right with any of its entries missing.
        """
        if not self.is_full and (not self._offsets or offset > self._offsets[-1]):
            self._offsets.append(offset)
            self._positions.append(position)

    def position_before(self, offset: int) -> int:
        """Return where to start looking for `offset`: the nearest indexed batch at or below it."""
        return self.entry_before(offset)[0]

    def entry_before(self, offset: int) -> tuple[int, int | None]:
        """Return where that batch starts, and its last offset; 0 and None before any entry."""
        slot = bisect_right(self._offsets, offset) - 1
        return (0, None) if slot < 0 else (self._positions[slot], self._offsets[slot])

    def truncate_to(self, offset: int) -> None:
        """Forget every entry for `offset` or above."""
        keep = bisect_left(self._offsets, offset)
        del self._offsets[keep:]
        del self._positions[keep:]

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number `first_entry` on."""
        base = self.base_offset
        return b"".join(
            _ENTRY.pack(offset - base, position)
            for offset, position in zip(
                self._offsets[first_entry:], self._positions[first_entry:], strict=True
            )
        )

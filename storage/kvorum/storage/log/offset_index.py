"""The .index file of a segment: from an offset to a place in the .log file.

Entries of 8 bytes: offset relative to the segment's base (int32), position (int32). Sparse: the
writer adds one about every 4096 bytes. Derived data: it is rebuilt for a segment that is
recovered; an index that is loaded must match the batches.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

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
        """The highest indexed offset; the segment's base offset without an entry."""
        return self._offsets[-1] if self._offsets else self.base_offset

    def add(self, *, offset: int, position: int) -> None:
        """Add an entry: the batch with the last offset `offset` starts at `position`.

        The entry is omitted if the index is full or the offset is not above the last one: a sparse
        index is valid without any of its entries.
        """
        if not self.is_full and (not self._offsets or offset > self._offsets[-1]):
            self._offsets.append(offset)
            self._positions.append(position)

    def position_before(self, offset: int) -> int:
        """Return the position to search `offset` from: the nearest indexed batch at or below it."""
        return self.entry_before(offset)[0]

    def entry_before(self, offset: int) -> tuple[int, int | None]:
        """Return the start and the last offset of that batch; 0 and None below the first entry."""
        slot = bisect_right(self._offsets, offset) - 1
        return (0, None) if slot < 0 else (self._positions[slot], self._offsets[slot])

    def first_offset_from(self, position: int) -> int | None:
        """Return the offset of the first entry at `position` or after it, None without one."""
        slot = bisect_left(self._positions, position)
        return self._offsets[slot] if slot < len(self._offsets) else None

    @property
    def last(self) -> tuple[int, int | None]:
        """Position and last offset of the batch indexed last; 0 and None before any entry."""
        return (self._positions[-1], self._offsets[-1]) if self._offsets else (0, None)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield for each entry the last offset of the batch, and the position where it starts."""
        return zip(self._offsets, self._positions, strict=True)

    def load(self, data: bytes) -> bool:
        """Load the entries of a file; none unless all are complete and increasing."""
        is_whole = len(data) % ENTRY_SIZE == 0
        entries = list(_ENTRY.iter_unpack(data)) if is_whole else []
        if not all(a < c and b < d for (a, b), (c, d) in pairwise([(-1, 0), *entries])):
            is_whole, entries = False, []
        self._offsets = array("q", (self.base_offset + offset for offset, _ in entries))
        self._positions = array("q", (position for _, position in entries))
        return is_whole

    def truncate_to(self, offset: int) -> None:
        """Remove every entry for `offset` or above."""
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

"""The offset index and the time index of a segment, and their files, which Kafka's tools read too.

Both are derived data: an index is rebuilt for a segment that is recovered, and one that is loaded
must match the batches.
"""

import struct
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Final

from kvorum.storage.errors import DiskError
from kvorum.storage.files import FileSystem, OpenFile, disk_errors, read_if_there
from kvorum.storage.log.disk_queue import IN_PLACE, WriteOrder

RELATIVE_OFFSET_MAX: Final = 2**31 - 1
"""Offsets in the index files are relative to the segment's base, as int32."""
NO_TIMESTAMP: Final = -1


class Index(ABC):
    """The entries of one index, in memory: offsets, and what each stands for.

    `IndexFile` keeps them on disk.
    """

    entry: ClassVar[struct.Struct]

    def __init__(self, base_offset: int, *, size_bytes_max: int) -> None:
        self.base_offset = base_offset
        self._entries_max = size_bytes_max // self.entry.size
        self._offsets = array("q")
        self._others = array("q")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def size(self) -> int:
        """The bytes of the entries in the file."""
        return len(self._offsets) * self.entry.size

    def truncate_to(self, offset: int) -> None:
        """Remove every entry for `offset` or above."""
        keep = bisect_left(self._offsets, offset)
        del self._offsets[keep:]
        del self._others[keep:]

    @abstractmethod
    def load(self, data: bytes) -> bool:
        """Load the entries of a file; none unless all are complete and increasing."""

    @abstractmethod
    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number `first_entry` on."""


class OffsetIndex(Index):
    """The .index file: from an offset to a place in the .log file.

    Entries of 8 bytes: offset relative to the segment's base (int32), position (int32). Sparse: the
    writer adds one about every 4096 bytes.
    """

    entry = struct.Struct(">ii")

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
            self._others.append(position)

    def position_before(self, offset: int) -> int:
        """Return the position to search `offset` from: the nearest indexed batch at or below it."""
        return self.entry_before(offset)[0]

    def entry_before(self, offset: int) -> tuple[int, int | None]:
        """Return the start and the last offset of that batch; 0 and None below the first entry."""
        slot = bisect_right(self._offsets, offset) - 1
        return (0, None) if slot < 0 else (self._others[slot], self._offsets[slot])

    def first_offset_from(self, position: int) -> int | None:
        """Return the offset of the first entry at `position` or after it, None without one."""
        slot = bisect_left(self._others, position)
        return self._offsets[slot] if slot < len(self._offsets) else None

    @property
    def last(self) -> tuple[int, int | None]:
        """Position and last offset of the batch indexed last; 0 and None before any entry."""
        return (self._others[-1], self._offsets[-1]) if self._offsets else (0, None)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield for each entry the last offset of the batch, and the position where it starts."""
        return zip(self._offsets, self._others, strict=True)

    def load(self, data: bytes) -> bool:
        """Load the entries of a file; none unless all are complete and increasing."""
        is_whole = len(data) % self.entry.size == 0
        entries = list(self.entry.iter_unpack(data)) if is_whole else []
        if not all(a < c and b < d for (a, b), (c, d) in pairwise([(-1, 0), *entries])):
            is_whole, entries = False, []
        self._offsets = array("q", (self.base_offset + offset for offset, _ in entries))
        self._others = array("q", (position for _, position in entries))
        return is_whole

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number `first_entry` on."""
        base = self.base_offset
        return b"".join(
            self.entry.pack(offset - base, position)
            for offset, position in zip(
                self._offsets[first_entry:], self._others[first_entry:], strict=True
            )
        )


class TimeIndex(Index):
    """The .timeindex file: from a timestamp to an offset.

    Entries of 12 bytes: the highest timestamp so far (int64), the offset, relative to the segment's
    base, of the last record of the batch that has it (int32). Timestamps strictly increase.
    """

    entry = struct.Struct(">qi")

    @property
    def is_full(self) -> bool:
        """Whether only the slot for the last entry of a finished segment is left."""
        return len(self._others) >= self._entries_max - 1

    @property
    def last(self) -> tuple[int, int]:
        """Timestamp and offset of the last entry; (NO_TIMESTAMP, base offset) without one."""
        if not self._others:
            return NO_TIMESTAMP, self.base_offset
        return self._others[-1], self._offsets[-1]

    def offset_before(self, timestamp: int) -> int:
        """Return the offset of the last entry below `timestamp`, else the base offset.

        No record before that offset has `timestamp` or a later one.
        """
        slot = bisect_left(self._others, timestamp) - 1
        return self.base_offset if slot < 0 else self._offsets[slot]

    def add(self, *, timestamp: int, offset: int, is_last: bool = False) -> None:
        """Add the highest timestamp so far, if it is higher than that of the last entry.

        `is_last` marks the entry that closes a segment, which may take the reserved slot.
        """
        has_room = len(self._others) < self._entries_max if is_last else not self.is_full
        last_timestamp = self._others[-1] if self._others else NO_TIMESTAMP
        if has_room and timestamp > last_timestamp:
            self._others.append(timestamp)
            self._offsets.append(offset)

    def remove_last(self) -> None:
        """Remove the last entry."""
        self._others.pop()
        self._offsets.pop()

    def load(self, data: bytes) -> bool:
        """Load the entries of a file; none unless all are complete and increasing."""
        is_whole = len(data) % self.entry.size == 0
        entries = list(self.entry.iter_unpack(data)) if is_whole else []
        if not all(a < c and b <= d for (a, b), (c, d) in pairwise([(NO_TIMESTAMP, 0), *entries])):
            is_whole, entries = False, []
        self._others = array("q", (timestamp for timestamp, _ in entries))
        self._offsets = array("q", (self.base_offset + offset for _, offset in entries))
        return is_whole

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number `first_entry` on."""
        base = self.base_offset
        return b"".join(
            self.entry.pack(timestamp, offset - base)
            for timestamp, offset in zip(
                self._others[first_entry:], self._offsets[first_entry:], strict=True
            )
        )


class IndexFile:
    """One .index or .timeindex file.

    The file is not synced on its own: it can be rebuilt from the segment at any time. It is not
    preallocated, unlike Kafka's, so it is never longer than its entries.
    """

    def __init__(self, path: Path, index: Index, *, files: FileSystem) -> None:
        self.path = path
        self._index = index
        self._files = files
        # The file is created when it is first written: reading a log must change nothing.
        self._file: OpenFile | None = None
        self._stored_count = 0

    def _opened(self) -> OpenFile:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
        return self._file

    def load(self) -> bool:
        """Load the entries from the file; return False, with no entries, where it is not sound."""
        data = read_if_there(self._files, self.path)
        is_sound = self._index.load(data or b"") and data is not None
        self._stored_count = len(self._index)
        return is_sound

    def store_all(self) -> bool:
        """Make the file hold exactly the entries; return whether it had to be changed."""
        data = self._index.encode()
        with disk_errors(self.path, "writing"):
            file = self._opened()
            size = file.size()
            is_same = size == len(data) and file.read_at(0, size) == data
            if not is_same:
                file.truncate(0)
                file.write_at(0, data)
        self._stored_count = len(self._index)
        return not is_same

    def store_new(self, order: WriteOrder = IN_PLACE) -> None:
        """Append the entries that are not in the file yet, in the `order` of the log's writes."""
        first = self._stored_count
        if len(self._index) == first:
            return
        entries = self._index.encode(first)
        self._stored_count = len(self._index)
        try:
            order.do(partial(self._write, first * self._index.entry.size, entries))
        except DiskError:
            self._stored_count = first
            raise

    def _write(self, position: int, entries: bytes) -> None:
        with disk_errors(self.path, "writing"):
            self._opened().write_at(position, entries)

    def cut(self) -> None:
        """Remove from the file what is no longer among the entries."""
        with disk_errors(self.path, "truncating"):
            self._opened().truncate(self._index.size)
        self._stored_count = len(self._index)

    def sync(self) -> None:
        """Make the file durable."""
        with disk_errors(self.path, "syncing"):
            self._opened().sync()

    def move_to(self, path: Path) -> None:
        """Go on with the file under its new name."""
        self.close()
        self._file, self.path = None, path

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

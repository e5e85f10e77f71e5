"""The reading of files: mapped bytes, names on their way, entries of indexes, and the progress."""

import mmap
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

RELEASED_AT_ONCE: Final = 8 * 1024 * 1024
"""The number of bytes that the reader goes on before it gives those before it back."""
_PASSING: Final = re.compile(r"\.(deleted|cleaned|swap|part|tmp)\Z")
_IN_WRITING: Final = re.compile(r"\.(cleaned|part|tmp)\Z")
OFFSET_ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")
GONE: Final = "it was there when the directory was listed, and is gone"
"""The problem with a file that a running node has removed or renamed."""
Tell: TypeAlias = Callable[[Path, int], None]
"""Takes a file that is being read, and the bytes of it that have been."""


class MappedFile:
    """The bytes of a file as `view`; an empty file, which cannot be mapped, has none.

    The mapping goes with the last view of it, such as a batch that is still in use. Opening raises
    OSError.
    """

    def __init__(self, path: Path) -> None:
        self._map: mmap.mmap | None = None
        self._released = 0
        with path.open("rb") as file:
            if path.stat().st_size > 0:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.view: Final = memoryview(b"" if self._map is None else self._map)

    def release(self, position: int) -> None:
        """Let the system take the memory of what is before `position`; it can be read again."""
        if self._map is None or position - self._released < RELEASED_AT_ONCE:
            return
        self._released = position - position % mmap.PAGESIZE
        # Not every system has this call.
        if hasattr(self._map, "madvise"):
            self._map.madvise(mmap.MADV_DONTNEED, 0, self._released)


def lasting_name(name: str) -> str:
    """Return the name that a file had before it was to be removed, or has once it is in place."""
    return _PASSING.sub("", name)


def is_in_writing(name: str) -> bool:
    """Return whether a file of that name is one that a node has not written to its end yet."""
    return _IN_WRITING.search(name) is not None


class OffsetEntry(NamedTuple):
    """An entry of an .index file: the last offset of a batch, and the byte where it begins."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """An entry of a .timeindex file: the largest timestamp so far, and the offset that has it."""

    timestamp: int
    offset: int


def used_bytes(data: bytes, entry_size: int) -> int:
    """Return the size in bytes of an index without the zeros that a node sets aside behind.

    It is a multiple of `entry_size`, but where the file ends within the last entry. An index that
    is no larger than one entry has no such zeros: that entry may be a zero itself.
    """
    if len(data) <= entry_size:
        return len(data)
    used = len(data.rstrip(b"\0"))
    return min(used + -used % entry_size, len(data))


def offset_entries(data: bytes, base_offset: int) -> list[OffsetEntry]:
    """Return the whole entries of an offset index."""
    return [
        OffsetEntry(base_offset + relative, position)
        for relative, position in _whole_entries(data, OFFSET_ENTRY)
    ]


def time_entries(data: bytes, base_offset: int) -> list[TimeEntry]:
    """Return the whole entries of a time index."""
    return [
        TimeEntry(timestamp, base_offset + relative)
        for timestamp, relative in _whole_entries(data, TIME_ENTRY)
    ]


def _whole_entries(data: bytes, entry: struct.Struct) -> Iterator[tuple[int, int]]:
    return entry.iter_unpack(data[: len(data) - len(data) % entry.size])


def no_report(file: Path, position: int) -> None:
    """Take in how far a reading has come, and do nothing."""


class Reached:
    """The place that a reading has come to; each one is handed on.

    `file` is None before the first place, and `position` is a byte of the file.
    """

    def __init__(self, hand_on: Tell = no_report) -> None:
        self.hand_on = hand_on
        self.file: Path | None = None
        self.position = 0

    def tell(self, file: Path, position: int) -> None:
        """Take in how far a file has been read."""
        self.file = file
        self.position = position
        self.hand_on(file, position)

    @property
    def text(self) -> str:
        """The place in words that follow a verb."""
        if self.file is None:
            return "before the first batch"
        return f"at byte {self.position} of {self.file}"

"""The entries of a segment's indexes, which name offsets relative to its base offset."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

OFFSET_ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    """An entry of an .index file: the last offset of a batch, and the byte where it begins."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """An entry of a .timeindex file: the largest timestamp so far, and the offset that has it."""

    timestamp: int
    offset: int


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

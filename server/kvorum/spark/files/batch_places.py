"""Where batches are in a file: a header that can be one, a checksum, the next sound batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kvorum.spark.files.file_window import BLOCK_BYTES, FileWindow
from kvorum.storage.batch_header import (
    CRC_START,
    HEADER_SIZE,
    MAGIC,
    BatchHeader,
    read_header,
)
from kvorum.wire.checksums import crc32c

MAGIC_PLACE: Final = 16
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_MAGIC_BYTE: Final = bytes((MAGIC,))
# The shortest record has a length, attributes, two differences, key, value and headers.
_RECORD_BYTES_MIN: Final = 7


class Bounds(NamedTuple):
    """Which batches belong to a file: offsets from `first_offset`, below `end_offset` if known."""

    first_offset: int
    end_offset: int | None = None

    def include(self, header: BatchHeader) -> bool:
        """Return whether all offsets of a batch are within the bounds."""
        if header.base_offset < self.first_offset:
            return False
        # An index holds differences to the segment's first offset in 32 bits.
        limit = self.end_offset
        return header.next_offset <= (self.first_offset + INT32_MAX if limit is None else limit)


def header_at(window: FileWindow, position: int) -> BatchHeader | None:
    """Return the header at `position`, whatever it contains; None where too few bytes are left."""
    data = window.at(position, HEADER_SIZE)
    return read_header(data) if len(data) == HEADER_SIZE else None


def header_problem(header: BatchHeader) -> str | None:
    """Return what no header of a batch can contain, or None."""
    if header.base_offset > INT64_MAX - INT32_MAX:
        return f"batch offsets {header.base_offset} to {header.last_offset} are impossible"
    if header.record_count < 0:
        return f"a batch of {header.record_count} records"
    return header.problem()


def is_sound(window: FileWindow, position: int, header: BatchHeader) -> bool:
    """Return whether the checksum of a batch that ends within the window's file is right.

    A batch that is larger than a block is not held in memory for that.
    """
    if header.size <= BLOCK_BYTES:
        return crc32c(window.at(position, header.size)[CRC_START:]) == header.crc
    crc = 0
    start, end = position + CRC_START, position + header.size
    while start < end:
        part = window.at(start, min(BLOCK_BYTES, end - start))
        if not part:
            return False
        crc = crc32c(part, crc)
        start += len(part)
    return crc == header.crc


def next_sound_batch(
    window: FileWindow, position: int, *, header: BatchHeader | None, bounds: Bounds, end: int
) -> int | None:
    """Return where the first sound batch behind a damaged one at `position` begins, or None.

    It has offsets within `bounds`, and ends at byte `end` at the latest.

    It is first looked for where the damaged one ends by its length, then at every byte.
    """
    if header is not None and header_problem(header) is None:
        behind = position + header.size
        if _begins_batch(window, behind, bounds, end):
            return behind
    places = _possible_places(window, position + 1, end)
    return next((place for place in places if _begins_batch(window, place, bounds, end)), None)


def _begins_batch(window: FileWindow, position: int, bounds: Bounds, end: int) -> bool:
    header = header_at(window, position)
    return (
        header is not None
        and header_problem(header) is None
        and bounds.include(header)
        and header.record_count * _RECORD_BYTES_MIN <= _body_bytes_max(header)
        and position + header.size <= end
        and is_sound(window, position, header)
    )


def _body_bytes_max(header: BatchHeader) -> int:
    """Return a bound of a batch's unpacked records: packed ones may be any multiple."""
    is_packed = bool(header.attributes & 0x07)
    return INT64_MAX if is_packed else header.size - HEADER_SIZE


def _possible_places(window: FileWindow, start: int, end: int) -> Iterator[int]:
    """Yield each position behind which the number of the batch format is at its place."""
    while start + HEADER_SIZE <= end:
        block = bytes(window.at(start, min(BLOCK_BYTES, end - start)))
        found = block.find(_MAGIC_BYTE, MAGIC_PLACE)
        while found >= 0:
            yield start + found - MAGIC_PLACE
            found = block.find(_MAGIC_BYTE, found + 1)
        start += max(len(block) - MAGIC_PLACE, 1)

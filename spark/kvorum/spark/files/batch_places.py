"""The places of batches in a file: a header that can be one, a checksum, the next sound batch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from kvorum.spark.files.file_window import BLOCK_BYTES, FileWindow
from kvorum.spark.files.legacy_header import (
    MESSAGE_BYTES_MIN,
    LegacyHeader,
    checksum_of,
    is_of_legacy_format,
    read_legacy_header,
)
from kvorum.storage.log.batch_header import (
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
BASE_OFFSET_MAX: Final = INT64_MAX - INT32_MAX
"""The highest base offset: after it a batch's last offset need not be one of 64 bits."""
_MAGIC_BYTE: Final = bytes((MAGIC,))
# The shortest record has a length, attributes, two differences, key, value and headers.
_RECORD_BYTES_MIN: Final = 7
_OFFSET_AND_LENGTH: Final = Struct(">qi")

EntryHeader: TypeAlias = BatchHeader | LegacyHeader
"""The header of an entry of a log of any age."""


class Bounds(NamedTuple):
    """Which batches belong to a file: offsets from `first_offset`, below `end_offset` if known."""

    first_offset: int
    end_offset: int | None = None

    def include(self, header: EntryHeader) -> bool:
        """Return whether all offsets of a batch are within the bounds."""
        return self.first_offset <= header.base_offset and header.next_offset <= self.limit

    @property
    def limit(self) -> int:
        """The offset after the last one that the file can have."""
        # An index holds differences to the segment's first offset in 32 bits.
        return self.first_offset + INT32_MAX if self.end_offset is None else self.end_offset


def header_at(window: FileWindow, position: int) -> BatchHeader | None:
    """Return the header at `position`, whatever it contains; None where too few bytes are left."""
    data = window.at(position, HEADER_SIZE)
    return read_header(data) if len(data) == HEADER_SIZE else None


def entry_header_at(window: FileWindow, position: int) -> EntryHeader | None:
    """Return the header at `position` of a batch, or of a message of format 0 or 1.

    None where too few bytes are left.
    """
    data = window.at(position, HEADER_SIZE)
    if is_of_legacy_format(data):
        return read_legacy_header(data)
    return read_header(data) if len(data) == HEADER_SIZE else None


def header_problem(header: EntryHeader) -> str | None:
    """Return what no header of a batch can contain, or None."""
    if header.base_offset > BASE_OFFSET_MAX:
        return f"batch offsets {header.base_offset} to {header.last_offset} are impossible"
    if header.record_count < 0:
        return f"a batch of {header.record_count} records"
    return header.problem()


def is_sound(window: FileWindow, position: int, header: EntryHeader) -> bool:
    """Return whether the checksum of a batch that ends within the window's file is right.

    A batch that is larger than a block is not held in memory for that.
    """
    is_legacy = isinstance(header, LegacyHeader)
    checksum, covered = (checksum_of, MAGIC_PLACE) if is_legacy else (crc32c, CRC_START)
    if header.size <= BLOCK_BYTES:
        return checksum(window.at(position, header.size)[covered:]) == header.crc
    crc = 0
    start, end = position + covered, position + header.size
    while start < end:
        part = window.at(start, min(BLOCK_BYTES, end - start))
        if not part:
            return False
        crc = checksum(part, crc)
        start += len(part)
    return crc == header.crc


def next_sound_batch(
    window: FileWindow,
    position: int,
    *,
    header: EntryHeader | None,
    bounds: Bounds,
    end: int,
    with_legacy: bool = False,
) -> int | None:
    """Return where the first sound batch after a damaged one at `position` begins, or None.

    It has offsets within `bounds`, and ends at byte `end` at the latest.

    It is first looked for where the damaged one ends by its length, then at every byte. With
    `with_legacy` it may be a message of format 0 or 1.
    """
    read = entry_header_at if with_legacy else header_at
    if header is not None and header_problem(header) is None:
        behind = position + header.size
        if _is_batch(window, behind, read(window, behind), bounds, end):
            return behind
    places = (
        _possible_entries(window, position + 1, end, bounds)
        if with_legacy
        else _possible_places(window, position + 1, end)
    )
    for place in places:
        if _is_batch(window, place, read(window, place), bounds, end):
            return place
    return None


def _is_batch(
    window: FileWindow, position: int, header: EntryHeader | None, bounds: Bounds, end: int
) -> bool:
    return (
        header is not None
        and header_problem(header) is None
        and bounds.include(header)
        and _has_room(header)
        and position + header.size <= end
        and is_sound(window, position, header)
    )


def _has_room(header: EntryHeader) -> bool:
    """Return whether a batch's records fit into it: packed ones may be any number."""
    if isinstance(header, LegacyHeader) or header.attributes & 0x07:
        return True
    return header.record_count * _RECORD_BYTES_MIN <= header.size - HEADER_SIZE


def _possible_places(window: FileWindow, start: int, end: int) -> Iterator[int]:
    """Yield each position behind which the number of the batch format is at its place."""
    while start + HEADER_SIZE <= end:
        block = bytes(window.at(start, min(BLOCK_BYTES, end - start)))
        found = block.find(_MAGIC_BYTE, MAGIC_PLACE)
        while found >= 0:
            yield start + found - MAGIC_PLACE
            found = block.find(_MAGIC_BYTE, found + 1)
        start += max(len(block) - MAGIC_PLACE, 1)


def _possible_entries(window: FileWindow, start: int, end: int, bounds: Bounds) -> Iterator[int]:
    """Yield each position where format, length and offset are those of an entry of the file."""
    looks_like_entry = _form_of_entries(bounds)
    while start + MESSAGE_BYTES_MIN <= end:
        block = window.at(start, min(BLOCK_BYTES, end - start))
        count = len(block) - MAGIC_PLACE
        if count <= 0:
            return
        for found in looks_like_entry.finditer(block):
            offset, length = _OFFSET_AND_LENGTH.unpack_from(block, found.start())
            if bounds.first_offset <= offset < bounds.limit and length <= end - start:
                yield start + found.start()
        start += count


def _form_of_entries(bounds: Bounds) -> re.Pattern[bytes]:
    """Return what begins where an entry may: the first bytes of its offset, length, format."""
    lowest, highest = bounds.first_offset, min(bounds.limit - 1, INT64_MAX)
    same_bytes = 8 - (max((lowest ^ highest).bit_length() - 1, -1) // 8 + 1)
    first_bytes = re.escape(lowest.to_bytes(8)[:same_bytes])
    rest = b".{%d}" % (8 - same_bytes)
    # A length above 0, a checksum or an epoch, and one of the formats.
    return re.compile(b"(?=" + first_bytes + rest + rb"(?!\0{4})[\0-\x7f].{7}[\0-\x02])", re.DOTALL)

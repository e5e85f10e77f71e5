"""The places of batches in a file: headers, checksums, the next sound batch, a torn end."""

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from kvorum.log_files.file_systems import BLOCK_BYTES, FileWindow, files_at
from kvorum.log_files.find import FileKind, LogFile
from kvorum.log_files.legacy_header import (
    MESSAGE_BYTES_MIN,
    LegacyHeader,
    message_looks_torn,
    read_legacy_header,
)
from kvorum.storage.log.batch_header import CRC_START, HEADER_SIZE, MAGIC, BatchHeader, read_header
from kvorum.storage.log.torn_tail import looks_torn
from kvorum.storage.metadata_log.control_batch import SNAPSHOT_HEADER, first_control_record
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
    if len(data) >= MESSAGE_BYTES_MIN and data[MAGIC_PLACE] < MAGIC:
        return read_legacy_header(data)
    return read_header(data) if len(data) == HEADER_SIZE else None


def header_problem(header: EntryHeader) -> str | None:
    """Return what no header of a batch can contain, or None."""
    if header.base_offset > BASE_OFFSET_MAX:
        return f"batch offsets {header.base_offset} to {header.last_offset} are impossible"
    if header.record_count < 0:
        return f"a batch of {header.record_count} records"
    return header.problem()


def control_type(header: BatchHeader, batch: memoryview) -> int | None:
    """Return the type of a batch's first control record; None for a batch without one."""
    control = first_control_record(batch, header)
    return None if control is None else control[0]


def is_of_other_kind(kind: FileKind, header: BatchHeader, batch: memoryview) -> bool:
    """Return whether the first batch of a file belongs into a file of another kind."""
    is_snapshot = control_type(header, batch) == SNAPSHOT_HEADER
    return is_snapshot == (kind is FileKind.SEGMENT)


def is_sound(window: FileWindow, position: int, header: EntryHeader) -> bool:
    """Return whether the checksum of a batch that ends within the window's file is right.

    A batch that is larger than a block is not held in memory for that.
    """
    is_legacy = isinstance(header, LegacyHeader)
    checksum, covered = (crc32, MAGIC_PLACE) if is_legacy else (crc32c, CRC_START)
    size = header.size
    if size <= BLOCK_BYTES:
        return checksum(window.at(position, size)[covered:]) == header.crc
    crc = 0
    start, end = position + covered, position + size
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
        after = position + header.size
        if _is_batch(window, after, read(window, after), bounds, end):
            return after
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
    """Yield each position that has the number of the batch format where a batch has it."""
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


def end_looks_torn(window: FileWindow, position: int, end: int, *, with_legacy: bool) -> bool:
    """Return whether the bytes from `position` to `end`, with no sound batch, are a torn write."""
    size = end - position
    if size <= BLOCK_BYTES:
        rest = window.at(position, size)
        of_message = message_looks_torn(rest) if with_legacy else None
        return looks_torn(rest) if of_message is None else of_message
    # A block that was never written ends in zeros; of a cut batch the header is enough.
    header = header_at(window, position)
    if header is not None and header_problem(header) is None:
        return header.size > size
    return looks_torn(window.at(end - BLOCK_BYTES, BLOCK_BYTES))


@contextmanager
def opened_window(
    file: LogFile, options: Mapping[str, Any], *, block_bytes: int = BLOCK_BYTES
) -> Generator[FileWindow]:
    """Yield a window on a file up to the size that was listed; `options` are fsspec's.

    Opening and reading raise OSError.
    """
    with closing(files_at(file.path, options).open(file.path)) as opened:
        yield FileWindow(opened, end=file.size, block_bytes=block_bytes)

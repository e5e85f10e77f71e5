"""Messages of the formats 0 and 1 as entries of a segment: where each ends, whether it is whole.

A message that wraps others has only the last one's offset in its header, so it is unpacked for the
first one. These formats are older than leader epochs, producers and control records.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from zlib import crc32

from kvorum.storage.log.batch_header import LENGTH_FIELD_END, MAGIC
from kvorum.wire.errors import WireError
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import LENGTH_MIN, MAGIC_PLACE, LegacyMessage, message_at

MESSAGE_BYTES_MIN: Final = LENGTH_FIELD_END + LENGTH_MIN
_HEAD = struct.Struct(">qiIbB")
_LENGTH = struct.Struct(">i")
_TIMESTAMP_BYTES: Final = 8
_NO_EPOCH: Final = -1


class LegacyHeader(NamedTuple):
    """The header of a message; `flaw` is what is wrong after it, as far as that was looked at."""

    base_offset: int
    last_offset: int
    length: int
    crc: int
    magic: int
    attributes: int
    flaw: str | None = None

    @property
    def size(self) -> int:
        """The size of the message in bytes, offset and length included."""
        return self.length + LENGTH_FIELD_END

    @property
    def next_offset(self) -> int:
        """The lowest offset that may follow."""
        return self.last_offset + 1

    @property
    def leader_epoch(self) -> int:
        """Always -1: these formats have no epochs."""
        return _NO_EPOCH

    @property
    def record_count(self) -> int:
        """The lowest number of records that a message can have."""
        return 1

    def problem(self) -> str | None:
        """Return the problem that makes this an invalid message, or None."""
        if self.length < LENGTH_MIN + (_TIMESTAMP_BYTES if self.magic else 0):
            return f"a message of format {self.magic} with a length of {self.length} bytes"
        if self.last_offset < 0:
            return f"message offset {self.last_offset} is impossible"
        return self.flaw

    def judged(self, data: memoryview) -> LegacyHeader:
        """Return the header with its first offset, or its flaw; `data` is all of the message.

        Checksums are verified of the messages that it wraps, not its own.
        """
        first = last = self.last_offset
        try:
            for index, wrapped in enumerate(whole_message(data).records(UNLIMITED_BYTES)):
                if not wrapped.is_valid:
                    return self._replace(flaw=f"the checksum of message {wrapped.offset} is wrong")
                _ = wrapped.value
                last = wrapped.offset
                first = first if index else last
        except WireError as error:
            return self._replace(flaw=str(error))
        if last != self.last_offset:
            # No checksum covers the offset; those that are wrapped in format 0 are absolute.
            flaw = f"message offset {self.last_offset} where the last one that it wraps has {last}"
            return self._replace(flaw=flaw)
        return self._replace(base_offset=first)


def whole_message(data: memoryview) -> LegacyMessage:
    """Return the message that `data` is; raises `WireError` for other bytes."""
    message = message_at(data, 0)
    assert message is not None, "the header says where it ends"
    return message


def read_legacy_header(data: memoryview) -> LegacyHeader:
    """Return the header of a message; there must be `MESSAGE_BYTES_MIN` bytes."""
    offset, length, crc, magic, attributes = _HEAD.unpack_from(data)
    return LegacyHeader(offset, offset, length, crc, magic, attributes)


def message_looks_torn(rest: memoryview) -> bool | None:
    """Return whether the bytes after the last entry are a message that the file's end cuts off.

    None where they do not look like a message of format 0 or 1 at all.
    """
    if len(rest) < MESSAGE_BYTES_MIN:
        return None
    (length,) = _LENGTH.unpack_from(rest, 8)
    if length + LENGTH_FIELD_END == len(rest):
        return False
    if rest[MAGIC_PLACE] >= MAGIC or length < LENGTH_MIN:
        return None
    header = read_legacy_header(rest)
    # It is cut off, unless only its length field is wrong and all its bytes are there.
    return header.size > len(rest) and crc32(rest[MAGIC_PLACE:]) != header.crc

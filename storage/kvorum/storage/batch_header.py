"""The header of a record batch, as the log needs it: where the batch ends and whether it is whole.

The log never decodes the records of a batch. It must, however, judge bytes that may be damaged, so
this view accepts any 61 bytes and returns their problem instead of raising an error.
Layout: DefaultRecordBatch of Kafka, message format 2, big endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kvorum.wire.checksums import crc32c

HEADER_SIZE = 61
# The length field counts what comes after it: everything but base offset and itself.
LENGTH_FIELD_END = 12
CRC_START = 21
MAGIC = 2
_CONTROL_BIT = 0x20
_LENGTH_MIN = HEADER_SIZE - LENGTH_FIELD_END
_HEADER = struct.Struct(">qiibIhiqqqhii")
assert _HEADER.size == HEADER_SIZE


class BatchHeader(NamedTuple):
    """The header fields of one batch, in their order on disk."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """The size of the batch in bytes, header included."""
        return self.length + LENGTH_FIELD_END

    @property
    def last_offset(self) -> int:
        """The offset of the batch's last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset that the batch after this one starts at."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records."""
        return bool(self.attributes & _CONTROL_BIT)

    def problem(self) -> str | None:
        """Return the problem that makes this an invalid header, or None."""
        if self.length < _LENGTH_MIN:
            return f"a batch length of {self.length} bytes is less than a header takes"
        if self.magic != MAGIC:
            return f"batch format {self.magic} instead of {MAGIC}"
        if self.base_offset < 0 or self.last_offset_delta < 0:
            return f"batch offsets {self.base_offset} to {self.last_offset} are impossible"
        return None


def read_header(data: bytes | memoryview, position: int = 0) -> BatchHeader:
    """Return the header at `position`; there must be HEADER_SIZE bytes."""
    return BatchHeader._make(_HEADER.unpack_from(data, position))


def checksum_matches(batch: memoryview, crc: int) -> bool:
    """Return whether a batch's bytes from the attributes on have the checksum `crc`."""
    return crc32c(batch[CRC_START:]) == crc


def batch_problem(batch: memoryview, header: BatchHeader) -> str | None:
    """Return the problem of a batch whose `header.size` bytes are all in `batch`, or None."""
    if checksum_matches(batch, header.crc):
        return None
    return "the checksum of the batch does not match its bytes"


def split_batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches of `data` with their bytes; ValueError at the first that is not whole."""
    position = 0
    while position < len(data):
        if len(data) - position < HEADER_SIZE:
            raise ValueError(f"{len(data) - position} bytes are less than a batch header")
        header = read_header(data, position)
        batch = data[position : position + header.size]
        problem = header.problem()
        if problem is None and len(batch) < header.size:
            problem = f"a batch of {header.size} bytes is cut off after {len(batch)}"
        problem = problem or batch_problem(batch, header)
        if problem is not None:
            raise ValueError(f"batch at offset {header.base_offset}: {problem}")
        yield header, batch
        position += header.size

"""The header of a record batch, as the log needs it: where the batch ends and whether it is whole.

Below are the checks of batches by their headers: whether they continue a log, and whether they are
the ones that were written to it.

The log never decodes the records of a batch. It must, however, judge bytes that may be damaged, so
this view accepts any 61 bytes and returns their problem instead of raising an error.
Layout: DefaultRecordBatch of Kafka, message format 2, big endian.

Logs of topics may begin with messages of the formats 0 and 1, each of which counts as a batch here;
the metadata log has none. A message that wraps others has the offset of the last one: that of the
first is inside, so that its base offset is not lower than its last.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from kvorum.storage.log.epochs import LeaderEpochs
from kvorum.wire.checksums import crc32c
from kvorum.wire.records import RecordBatch

HEADER_SIZE = 61
# The length field counts what comes after it: everything but base offset and itself.
LENGTH_FIELD_END = 12
CRC_START = 21
MAGIC = 2
NO_EPOCH = -1
"""The leader epoch of batches from before there were epochs."""
LEGACY_SIZE_MIN = 26
"""The size of the smallest message of format 0, and of what all of its header takes in format 1."""
_MAGIC_PLACE = 16
_CONTROL_BIT = 0x20
_LENGTH_MIN = HEADER_SIZE - LENGTH_FIELD_END
_HEADER = struct.Struct(">qiibIhiqqqhii")
assert _HEADER.size == HEADER_SIZE
_LEGACY_HEADER = struct.Struct(">qiIbB")
_LEGACY_TIMESTAMP = struct.Struct(">q")
_LEGACY_LENGTHS_MIN = (LEGACY_SIZE_MIN - LENGTH_FIELD_END, LEGACY_SIZE_MIN - 4)


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


class LegacyHeader(BatchHeader):
    """The header of a message of format 0 or 1, as that of a batch."""

    __slots__ = ()

    def problem(self) -> str | None:
        """Return the problem that makes this an invalid header, or None."""
        if self.length < _LEGACY_LENGTHS_MIN[self.magic]:
            return f"a batch length of {self.length} bytes is less than a header takes"
        return f"offset {self.base_offset} is impossible" if self.base_offset < 0 else None


_FIELD_COUNT = len(BatchHeader._fields)
assert RecordBatch._fields[_FIELD_COUNT:] == ("position", "data")


def header_at(data: bytes | memoryview, position: int = 0) -> BatchHeader | None:
    """Return the header of a batch or a message of any format; None where there are too few bytes.

    Only bytes of the log of a topic may be read so.
    """
    left = len(data) - position
    if left > _MAGIC_PLACE and data[position + _MAGIC_PLACE] < MAGIC:
        return _legacy_header(data, position) if left >= LEGACY_SIZE_MIN else None
    return read_header(data, position) if left >= HEADER_SIZE else None


def _legacy_header(data: bytes | memoryview, position: int) -> LegacyHeader:
    offset, length, crc, magic, attributes = _LEGACY_HEADER.unpack_from(data, position)
    timestamp = -1
    if magic:
        (timestamp,) = _LEGACY_TIMESTAMP.unpack_from(data, position + _LEGACY_HEADER.size)
    return LegacyHeader(
        base_offset=offset,
        length=length,
        leader_epoch=NO_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes & ~_CONTROL_BIT,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=-1,
    )


def read_header(data: bytes | memoryview, position: int = 0) -> BatchHeader:
    """Return the header at `position`; there must be HEADER_SIZE bytes."""
    return BatchHeader._make(_HEADER.unpack_from(data, position))


def header_of(batch: RecordBatch) -> BatchHeader:
    """Return the header of a batch that is read already."""
    return BatchHeader._make(batch[:_FIELD_COUNT])


def checksum_matches(batch: memoryview, crc: int) -> bool:
    """Return whether a batch's bytes from the attributes on have the checksum `crc`."""
    return crc32c(batch[CRC_START:]) == crc


def batch_problem(batch: memoryview, header: BatchHeader) -> str | None:
    """Return the problem of a batch whose `header.size` bytes are all in `batch`, or None."""
    if isinstance(header, LegacyHeader):
        is_right = zlib.crc32(batch[_MAGIC_PLACE:]) == header.crc
    else:
        is_right = checksum_matches(batch, header.crc)
    return None if is_right else "the checksum of the batch does not match its bytes"


def split_batches(data: memoryview) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield the batches of `data` with their bytes; ValueError at the first that is not whole."""
    position = 0
    while position < len(data):
        header = header_at(data, position)
        if header is None:
            raise ValueError(f"{len(data) - position} bytes are less than a batch header")
        batch = data[position : position + header.size]
        problem = header.problem()
        if problem is None and len(batch) < header.size:
            problem = f"a batch of {header.size} bytes is cut off after {len(batch)}"
        problem = problem or batch_problem(batch, header)
        if problem is not None:
            raise ValueError(f"batch at offset {header.base_offset}: {problem}")
        yield header, batch
        position += header.size


def continues(base_offset: int, end_offset: int, *, may_have_gaps: bool) -> bool:
    """Return whether a batch with that base offset may follow one that ends at `end_offset`."""
    return base_offset >= end_offset if may_have_gaps else base_offset == end_offset


def continuation_problem(
    header: BatchHeader, *, end_offset: int, epoch: int, may_have_gaps: bool
) -> str | None:
    """Return why a batch does not continue a log at `end_offset` in `epoch`; None if it does."""
    # Only logs of topics may have gaps, or be older than leader epochs.
    is_older = may_have_gaps and header.leader_epoch == NO_EPOCH
    is_next = continues(header.base_offset, end_offset, may_have_gaps=may_have_gaps)
    if is_next and (header.leader_epoch >= epoch or is_older):
        return None
    return (
        f"a batch at offset {header.base_offset} of epoch {header.leader_epoch} "
        f"does not continue a log that ends at {end_offset} in epoch {epoch}"
    )


def headers_that_continue(
    data: memoryview, *, end_offset: int, epoch: int, may_have_gaps: bool = False
) -> list[BatchHeader]:
    """Return the headers of whole batches that continue a log at `end_offset` in `epoch` or later.

    Raises ValueError unless there is at least one, every one is sound, begins at the offset where
    the one before it ends (or above it, in a log with gaps), and has no lower epoch.
    """
    headers: list[BatchHeader] = []
    for header, _ in split_batches(data):
        problem = continuation_problem(
            header, end_offset=end_offset, epoch=epoch, may_have_gaps=may_have_gaps
        )
        if problem is not None:
            raise ValueError(problem)
        end_offset, epoch = header.next_offset, max(header.leader_epoch, epoch)
        headers.append(header)
    if not headers:
        raise ValueError("there is no batch to append")
    return headers


def check_as_written(
    data: memoryview,
    *,
    first_offset: int,
    log_start_offset: int,
    epochs: LeaderEpochs,
    may_have_gaps: bool = False,
) -> None:
    """Raise ValueError unless these are the batches of a log from the one with `first_offset` on.

    In a log with gaps the first may begin above that offset. A batch's checksum does not cover its
    offset and epoch, so these are compared with the log's. A reader must never get corrupted bytes.
    """
    expected = first_offset
    for header, _ in split_batches(data):
        offset = header.base_offset
        if expected == first_offset:
            is_there = header.next_offset > expected and (may_have_gaps or offset <= expected)
        else:
            is_there = continues(offset, expected, may_have_gaps=may_have_gaps)
        is_older = may_have_gaps and header.leader_epoch == NO_EPOCH
        epoch = None if is_older else epochs.epoch_at(max(offset, log_start_offset))
        if not is_there or (epoch is not None and header.leader_epoch != epoch):
            problem = f"a batch of offset {offset} and epoch {header.leader_epoch}"
            raise ValueError(f"{problem} lies where {expected}, of epoch {epoch}, belongs")
        expected = header.next_offset

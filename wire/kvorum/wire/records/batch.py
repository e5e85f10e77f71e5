"""Record batches, message format 2: header, checksum, records (DefaultRecordBatch in Kafka).

A batch begins with 61 bytes, big endian: base offset, length of what follows it, partition leader
epoch, format, CRC-32C, attributes, last offset delta, base and largest timestamp, producer id and
epoch, base sequence, number of records. The checksum covers all from the attributes on, so that
a leader can assign offsets to a batch without changing the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple, Protocol, TypeVar

from kvorum.wire.checksums import crc32c
from kvorum.wire.errors import CorruptBatchError, DecompressionError
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.decompression import (
    DECOMPRESSED_BYTES_MAX,
    RECORD_BYTES_MAX,
    decompress_few,
    decompressed_pieces,
)
from kvorum.wire.records.record import (
    INT64_MAX,
    NEAR_LIMIT,
    Record,
    RecordData,
    read_records,
    within_64_bits,
    write_numbered,
)
from kvorum.wire.records.record_runs import RecordOutline, RecordPieces, Run, outline_of
from kvorum.wire.records.size_check import SizeCheck, any_size, up_to

INT32_MAX: Final = 2**31 - 1
MAGIC: Final = 2
HEADER_BYTES: Final = 61
# The length field counts what comes after it.
LENGTH_FIELD_END: Final = 12
CRC_START: Final = 21
NO_PRODUCER: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

_HEADER = struct.Struct(">qiibIhiqqqhii")
AFTER_CRC = struct.Struct(">hiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")
_LENGTH = struct.Struct(">i")
_WHAT = "record batch"
_COMPRESSIONS: Final = tuple(Compression)

_AnyRecord = TypeVar("_AnyRecord", Record, RecordOutline, Record | RecordOutline)


class RecordBatch(NamedTuple):
    """A batch in a buffer: its header fields, its position, and a view of all its bytes."""

    base_offset: int
    length: int
    partition_leader_epoch: int
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
    position: int
    data: memoryview

    @property
    def size(self) -> int:
        """The size of the batch in bytes, header included."""
        return self.length + LENGTH_FIELD_END

    @property
    def last_offset(self) -> int:
        """The offset of the last record that the batch had when it was written."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset that the batch after this one starts at."""
        return self.last_offset + 1

    @property
    def has_producer_id(self) -> bool:
        """Whether the batch is of an idempotent producer, which has an id of 0 or above."""
        return self.producer_id > NO_PRODUCER

    @property
    def last_sequence(self) -> int:
        """The producer's number of the last record, -1 without one; it wraps at 2³¹."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        last = self.base_sequence + self.last_offset_delta
        return last if last <= INT32_MAX else last - INT32_MAX - 1

    @property
    def compression(self) -> Compression:
        """The compression of the records; `DecompressionError` for an unknown one."""
        number = self.attributes & COMPRESSION_MASK
        if number >= len(_COMPRESSIONS):
            raise DecompressionError(_WHAT, f"compression {number}", offset=self.position)
        return _COMPRESSIONS[number]

    @property
    def is_packed(self) -> bool:
        """Whether the records are compressed, also in a way that is not known."""
        return bool(self.attributes & COMPRESSION_MASK)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker set the time of all records, to `max_timestamp`."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a producer's transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch holds control records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones, if that is decided."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def is_valid(self) -> bool:
        """Whether the checksum is right."""
        return crc32c(self.data[CRC_START:]) == self.crc

    def verify(self) -> None:
        """Raise `CorruptBatchError` unless the checksum is right."""
        computed = crc32c(self.data[CRC_START:])
        if computed != self.crc:
            problem = f"checksum {computed} where {self.crc} is stored"
            raise CorruptBatchError(_WHAT, problem, offset=self.position)

    def records(
        self,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
        *,
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> Iterator[Record]:
        """Yield the records, one at a time; the checksum is not verified.

        Raises `CorruptBatchError` where they cannot be read; for packed ones, `BatchTooLargeError`
        where all take more than `decompressed_bytes_max`, and `InvalidRecordError` at the first
        that takes more than `record_bytes_max`. While all take less than `DECOMPRESSED_BYTES_MAX`
        they are unpacked at once, else when they are read: then not more is in memory than the
        largest record and some pieces.
        """
        check_size = up_to(decompressed_bytes_max, self.compression)
        return self.content(check_size).records(record_bytes_max)

    def content(self, check_size: SizeCheck = any_size) -> BatchContent:
        """Return what the records are read from, more than once if need be.

        `check_size` is called with the size of what is unpacked so far. Raises
        `DecompressionError`.
        """
        packed = bytes(self.data[HEADER_BYTES:])
        unpacked = decompress_few(packed, self.compression)
        check_size(DECOMPRESSED_BYTES_MAX + 1 if unpacked is None else len(unpacked))
        return BatchContent(self, unpacked, check_size)

    def small_content(self, size_max: int) -> BatchContent | None:
        """Return the content, None if packed records unpack to more than `size_max` bytes.

        Raises `DecompressionError`.
        """
        packed = bytes(self.data[HEADER_BYTES:])
        unpacked = decompress_few(packed, self.compression, size_max=size_max)
        return None if unpacked is None else BatchContent(self, unpacked, any_size)


class BatchContent:
    """The records of a batch, unpacked if there are few bytes, else unpacked with each reading."""

    __slots__ = ("_batch", "_check_size", "_unpacked")

    def __init__(self, batch: RecordBatch, unpacked: bytes | None, check_size: SizeCheck) -> None:
        self._batch = batch
        self._unpacked = unpacked
        self._check_size = check_size

    def records(self, record_bytes_max: int = RECORD_BYTES_MAX) -> Iterator[Record]:
        """Yield the records as `RecordBatch.records` does."""
        unpacked = self._unpacked
        if unpacked is None or self._may_exceed(unpacked, record_bytes_max):
            runs = self._pieces(record_bytes_max).runs()
            return self._with_times(chain.from_iterable(map(self._records_of, runs)))
        return self._with_times(self._records_of(self._only_run(unpacked)))

    def outlines(self, record_bytes_max: int = RECORD_BYTES_MAX) -> Iterator[RecordOutline]:
        """Yield the records' outlines; raises as `records` does."""
        return (
            record if isinstance(record, RecordOutline) else outline_of(record)
            for record in self.records_and_outlines(record_bytes_max)
        )

    def records_and_outlines(
        self, record_bytes_max: int = RECORD_BYTES_MAX
    ) -> Iterator[Record | RecordOutline]:
        """Yield the records, but only outlines of those that are larger than a piece.

        Raises as `records` does.
        """
        parts = self.runs_and_outlines(record_bytes_max)
        return self._with_times(chain.from_iterable(map(self._read, parts)))

    def runs_and_outlines(
        self, record_bytes_max: int = RECORD_BYTES_MAX
    ) -> Iterator[Run | RecordOutline]:
        """Yield runs of records, and the outlines of those that are larger than a piece.

        The outlines have the times that records say. Raises as `RecordPieces.runs` does.
        """
        unpacked = self._unpacked
        if unpacked is None or self._may_exceed(unpacked, record_bytes_max):
            return self._pieces(record_bytes_max).runs_and_outlines()
        return iter((self._only_run(unpacked),))

    def _only_run(self, unpacked: bytes) -> Run:
        return Run(unpacked, 0, 0, self._batch.record_count)

    def _may_exceed(self, unpacked: bytes, record_bytes_max: int) -> bool:
        return len(unpacked) > record_bytes_max and self._batch.is_packed

    def _pieces(self, record_bytes_max: int) -> RecordPieces:
        batch = self._batch
        if self._unpacked is None:
            packed = bytes(batch.data[HEADER_BYTES:])
            pieces = decompressed_pieces(packed, batch.compression, self._check_size)
        else:
            pieces = iter((self._unpacked,))
        return RecordPieces(
            pieces,
            count=batch.record_count,
            base_offset=batch.base_offset,
            base_timestamp=batch.base_timestamp,
            record_bytes_max=record_bytes_max,
        )

    def _records_of(self, run: Run) -> Iterator[Record]:
        return read_records(
            run.data,
            count=run.record_count,
            base_offset=self._batch.base_offset,
            base_timestamp=self._batch.base_timestamp,
            position=run.position,
        )

    def _read(self, part: Run | RecordOutline) -> Iterable[Record | RecordOutline]:
        return (part,) if isinstance(part, RecordOutline) else self._records_of(part)

    def _with_times(self, records: Iterator[_AnyRecord]) -> Iterator[_AnyRecord]:
        """Yield records with the times that hold: the batch's, or 64 bits as in Java."""
        batch = self._batch
        if batch.is_log_append_time:
            return (record._replace(timestamp=batch.max_timestamp) for record in records)
        if abs(batch.base_timestamp) <= INT64_MAX - NEAR_LIMIT:
            return records
        return (record._replace(timestamp=within_64_bits(record.timestamp)) for record in records)


class LogUnit(Protocol):
    """A part of a log that has its size in bytes."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        ...


Unit = TypeVar("Unit", bound=LogUnit)


def read_batches(
    data: bytes | bytearray | memoryview, *, is_cut_allowed: bool = False
) -> Iterator[RecordBatch]:
    """Yield the batches in `data`, as views of it.

    The header's form is checked, the checksum is not: `RecordBatch.verify` does that. Raises
    `CorruptBatchError` for bytes that are no batch. With `is_cut_allowed` the last batch may be
    cut off, as in a fetch response, and is left out.
    """
    return read_units(memoryview(data), batch_at, begin=0, is_cut_allowed=is_cut_allowed)


def read_units(
    view: memoryview,
    unit_at: Callable[[memoryview, int], Unit | None],
    *,
    begin: int,
    is_cut_allowed: bool,
) -> Iterator[RecordBatch | Unit]:
    """Yield what is in `view` from `begin` on, as `read_batches` does for batches.

    `unit_at` returns what is at a position where no right batch is, None for what is cut off.
    """
    size = len(view)
    pos = begin
    while pos < size:
        for batch in read_right_batches(view, pos):
            yield batch
            pos = batch.position + batch.size
        if pos == size:
            return
        unit = unit_at(view, pos)
        if unit is None:
            if is_cut_allowed:
                return
            raise CorruptBatchError(_WHAT, f"cut off after {size - pos} bytes", offset=pos)
        yield unit
        pos += unit.size


# Makes a batch without `RecordBatch.__new__`, which would double the cost.
_NEW: Callable[[type[RecordBatch], Iterable[object]], RecordBatch] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of object


def read_right_batches(view: memoryview, begin: int) -> Iterator[RecordBatch]:
    """Yield the batches from `begin` on, up to the first that is cut off or has a wrong header.

    Nearly every batch is right, which one look at its header shows.
    """
    unpack, new = _HEADER.unpack_from, _NEW
    size = len(view)
    pos = begin
    while size - pos >= HEADER_BYTES:
        fields = unpack(view, pos)
        base_offset, length, _, magic, _, _, last_offset_delta, _, _, _, _, _, record_count = fields
        end = pos + LENGTH_FIELD_END + length
        if (
            magic != MAGIC
            or length < HEADER_BYTES - LENGTH_FIELD_END
            or end > size
            or not 0 <= base_offset <= INT64_MAX - INT32_MAX
            or last_offset_delta < 0
            or record_count < 0
        ):
            return
        yield new(RecordBatch, (*fields, pos, view[pos:end]))
        pos = end


def batch_at(view: memoryview, pos: int) -> RecordBatch | None:
    """Return the batch at `pos`, or None if it is cut off; may raise `CorruptBatchError`."""
    batch = unchecked_batch_at(view, pos)
    if batch is not None:
        _check_numbers(batch)
    return batch


def unchecked_batch_at(view: memoryview, pos: int) -> RecordBatch | None:
    """Return the batch at `pos` as `batch_at` does, whatever its offsets and its count are."""
    end = _batch_end(view, pos)
    return (
        None
        if end is None
        else _NEW(RecordBatch, (*_HEADER.unpack_from(view, pos), pos, view[pos:end]))
    )


def _batch_end(view: memoryview, pos: int) -> int | None:
    """Return the end of the batch at `pos` by its length field; None if that is cut off."""
    if len(view) - pos <= LENGTH_FIELD_END + 4:
        return None
    (length,) = _LENGTH.unpack_from(view, pos + 8)
    if length < HEADER_BYTES - LENGTH_FIELD_END:
        raise CorruptBatchError(_WHAT, f"a length of {length} bytes", offset=pos)
    end: int = pos + LENGTH_FIELD_END + length
    if end > len(view):
        return None
    magic = view[pos + 16]
    if magic != MAGIC:
        raise CorruptBatchError(_WHAT, f"message format {magic} instead of {MAGIC}", offset=pos)
    return end


def _check_numbers(batch: RecordBatch) -> None:
    # Any difference of 32 bits that a record may have leads to an offset of 64.
    if not 0 <= batch.base_offset <= INT64_MAX - INT32_MAX or batch.last_offset_delta < 0:
        problem = f"offsets {batch.base_offset} to {batch.last_offset}"
    elif batch.record_count < 0:
        problem = f"{batch.record_count} records"
    else:
        return
    raise CorruptBatchError(_WHAT, problem, offset=batch.position)


class BatchOptions(NamedTuple):
    """The header values of a batch to be built."""

    base_offset: int = 0
    partition_leader_epoch: int = -1
    compression: Compression = Compression.NONE
    producer_id: int = NO_PRODUCER
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False
    is_control: bool = False


DEFAULT_OPTIONS: Final = BatchOptions()


def build_batch(
    records: Iterable[RecordData],
    options: BatchOptions = DEFAULT_OPTIONS,
    check_size: SizeCheck = any_size,
) -> bytes:
    """Return a batch of `records`, whose offsets count up from the base offset.

    The first record's timestamp is the base. `check_size` is called with the size that the batch
    has reached. Raises `EncodeError` for no records at all: a batch without any comes only from
    compaction.
    """
    written = write_numbered(
        enumerate(records),
        compression=options.compression,
        check_size=lambda size: check_size(HEADER_BYTES + size),
    )
    after_crc = AFTER_CRC.pack(
        _attributes(options),
        written.record_count - 1,
        written.first_timestamp,
        written.latest_timestamp,
        options.producer_id,
        options.producer_epoch,
        options.base_sequence,
        written.record_count,
    )
    return with_beginning(
        after_crc,
        written.data,
        base_offset=options.base_offset,
        epoch=options.partition_leader_epoch,
    )


def with_beginning(after_crc: bytes, body: bytes, *, base_offset: int, epoch: int) -> bytes:
    """Return a batch of the header's fields from the attributes on, and the packed records."""
    checksum = crc32c(body, crc32c(after_crc))
    length = HEADER_BYTES - LENGTH_FIELD_END + len(body)
    before_crc = _BEFORE_CRC.pack(base_offset, length, epoch, MAGIC, checksum)
    return b"".join((before_crc, after_crc, body))


def _attributes(options: BatchOptions) -> int:
    return (
        int(options.compression)
        | (TRANSACTIONAL if options.is_transactional else 0)
        | (CONTROL if options.is_control else 0)
    )

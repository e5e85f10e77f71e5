"""Batches as compaction writes them again: with fewer records, or with none (KIP-534).

What identifies the batch stays: base offset, last offset, leader epoch, and the producer with its
sequence. A batch with a delete horizon has it in the place of the base timestamp.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from kvorum.wire.records.batch import (
    AFTER_CRC,
    COMPRESSION_MASK,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    RecordBatch,
    batch_at,
    with_beginning,
)
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import NO_EPOCH, LegacyMessage
from kvorum.wire.records.record import Record, RecordData, write_numbered

_KEPT_WITHOUT_RECORDS: Final = LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
_KEPT: Final = _KEPT_WITHOUT_RECORDS | COMPRESSION_MASK


def converted(message: LegacyMessage) -> RecordBatch:
    """Return a message of format 0 or 1, with those that it wraps, as a batch.

    Its `magic` is that of the message: what is kept of it begins and ends with its own records.
    Raises what `LegacyMessage.records` does.
    """
    header = RecordBatch(
        base_offset=message.base_offset,
        length=0,
        partition_leader_epoch=NO_EPOCH,
        magic=message.magic,
        crc=0,
        attributes=int(message.compression)
        | (LOG_APPEND_TIME if message.is_log_append_time else 0),
        last_offset_delta=0,
        base_timestamp=message.timestamp,
        max_timestamp=message.timestamp,
        producer_id=NO_PRODUCER,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
        record_count=0,
        position=message.position,
        data=memoryview(b""),
    )
    records = (
        Record(one.offset, one.timestamp, one.key, one.value, ())
        for one in message.records(UNLIMITED_BYTES)
    )
    batch = batch_at(memoryview(with_records(header, records, delete_horizon_ms=None)), 0)
    assert batch is not None
    return batch._replace(magic=message.magic)


def with_records(
    batch: RecordBatch, records: Iterable[Record], *, delete_horizon_ms: int | None
) -> bytes:
    """Return the batch with these of its records, at least one, and with or without a horizon.

    Raises `EncodeError` for no records.
    """
    is_converted = batch.magic < MAGIC
    if is_converted:
        records = iter(records)
        first = next(records)
        records = chain((first,), records)
        batch = batch._replace(base_offset=first.offset)
    base_offset = batch.base_offset
    last_delta = 0

    def numbered() -> Iterator[tuple[int, RecordData]]:
        nonlocal last_delta
        for record in records:
            last_delta = record.offset - base_offset
            yield (
                last_delta,
                RecordData(record.value, record.key, record.timestamp, record.headers),
            )

    written = write_numbered(numbered(), delete_horizon_ms, compression=batch.compression)
    if is_converted:
        batch = batch._replace(last_offset_delta=last_delta)
    attributes = batch.attributes & _KEPT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON
    max_timestamp = batch.max_timestamp
    if not batch.is_log_append_time:
        max_timestamp = max(NO_TIMESTAMP, written.latest_timestamp)
    first_timestamp = written.first_timestamp
    return _written(
        batch,
        written.data,
        attributes=attributes,
        base_timestamp=first_timestamp if delete_horizon_ms is None else delete_horizon_ms,
        max_timestamp=max_timestamp,
        record_count=written.record_count,
    )


def without_records(batch: RecordBatch) -> bytes:
    """Return the header of the batch alone, as one of no records."""
    return _written(
        batch,
        b"",
        attributes=batch.attributes & _KEPT_WITHOUT_RECORDS,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=batch.max_timestamp,
        record_count=0,
    )


def _written(
    batch: RecordBatch,
    body: bytes,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    record_count: int,
) -> bytes:
    after_crc = AFTER_CRC.pack(
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        record_count,
    )
    return with_beginning(
        after_crc, body, base_offset=batch.base_offset, epoch=batch.partition_leader_epoch
    )

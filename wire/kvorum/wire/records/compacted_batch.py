"""Batches as compaction writes them anew: with fewer records, or with none (KIP-534).

What identifies the batch stays: base offset, last offset, leader epoch, and the producer with its
sequence. A batch with a delete horizon has it in the place of the base timestamp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kvorum.wire.checksums import crc32c
from kvorum.wire.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    LENGTH_FIELD_END,
    LOG_APPEND_TIME,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    RecordBatch,
)
from kvorum.wire.records.compression import compress
from kvorum.wire.records.record import Record, RecordData, write_numbered

_BEFORE_CRC: Final = struct.Struct(">qiibI")
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")
_KEPT_WITHOUT_RECORDS: Final = LOG_APPEND_TIME | TRANSACTIONAL | CONTROL
_KEPT: Final = _KEPT_WITHOUT_RECORDS | COMPRESSION_MASK


def with_records(
    batch: RecordBatch, records: Iterable[Record], *, delete_horizon_ms: int | None
) -> bytes:
    """Return the batch with these of its records, at least one, and with or without a horizon.

    Raises `EncodeError` for no records.
    """
    base_offset = batch.base_offset
    numbered = (
        (
            record.offset - base_offset,
            RecordData(record.value, record.key, record.timestamp, record.headers),
        )
        for record in records
    )
    written = write_numbered(numbered, delete_horizon_ms)
    attributes = batch.attributes & _KEPT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON
    max_timestamp = batch.max_timestamp
    if not batch.is_log_append_time:
        max_timestamp = max(NO_TIMESTAMP, written.latest_timestamp)
    first_timestamp = written.first_timestamp
    return _written(
        batch,
        compress(written.data, batch.compression),
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
    after_crc = _AFTER_CRC.pack(
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        record_count,
    )
    before_crc = _BEFORE_CRC.pack(
        batch.base_offset,
        HEADER_BYTES - LENGTH_FIELD_END + len(body),
        batch.partition_leader_epoch,
        MAGIC,
        crc32c(body, crc32c(after_crc)),
    )
    return b"".join((before_crc, after_crc, body))

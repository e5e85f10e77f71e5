"""Text form of the batches and records of a segment or a snapshot, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from types import MappingProxyType

from kvorum.metadata.json_text import json_text
from kvorum.wire.checksums import crc32c
from kvorum.wire.json_form import to_json
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    Compression,
    ControlRecordType,
    Record,
    RecordBatch,
    decode_control_record,
)
from kvorum.wire.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    LENGTH_FIELD_END,
    LOG_APPEND_TIME,
    NO_SEQUENCE,
    TRANSACTIONAL,
)
from kvorum.wire.records.legacy import Entry, LegacyMessage

NO_TIMESTAMP = -1
UNLIMITED_BYTES = 2**31 - 1
_SEQUENCE_MASK = 0x7FFF_FFFF
_WRITERS_MAX = 256
_CODEC_NAMES = tuple(codec.name.lower() for codec in Compression)
_CODECS = len(_CODEC_NAMES)
INDENT = "|"
# Only LeaderChange has a colon.
_CONTROL_TITLES = MappingProxyType(
    {
        ControlRecordType.LEADER_CHANGE: "LeaderChange:",
        ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
        ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
        ControlRecordType.KRAFT_VERSION: "KRaftVersion",
        ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
    }
)


def records_with_texts(entry: Entry) -> Iterator[tuple[Record, str]]:
    """Yield each record of a batch with its text, without a limit on the unpacked size."""
    if isinstance(entry, RecordBatch):
        for record in entry.records(UNLIMITED_BYTES):
            yield record, record_text(entry, record)
        return
    for message in entry.records(UNLIMITED_BYTES):
        record = Record(message.offset, message.timestamp, message.key, message.value, ())
        yield record, message_text(entry, message, record)


def latest_timestamp(entry: Entry) -> int:
    """Return the latest timestamp of the records of a batch, -1 without records."""
    times = (record.timestamp for record in entry.records(UNLIMITED_BYTES))
    return max(times, default=NO_TIMESTAMP)


def entry_line(entry: Entry) -> str:
    """Return the line for the header of a batch, or for a message of format 0 or 1."""
    if isinstance(entry, RecordBatch):
        return batch_line(entry)
    return (
        f"offset: {entry.offset} position: {entry.position} {_time_name(entry)}: {entry.timestamp} "
        f"size: {entry.size} magic: {entry.magic} compresscodec: {entry.compression.name.lower()} "
        f"crc: {entry.crc} isvalid: {_boolean(entry.is_valid)}"
    )


def batch_line(batch: RecordBatch) -> str:
    """Return the line for the header of a batch."""
    # Unpacked at once: a log may have as many batches as records.
    (
        base_offset,
        length,
        epoch,
        magic,
        crc,
        attributes,
        last_delta,
        base_time,
        max_time,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
        position,
        data,
    ) = batch
    last_sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else batch.last_sequence
    horizon = f"[{base_time}]" if attributes & DELETE_HORIZON else ".empty"
    codec = attributes & COMPRESSION_MASK
    return (
        f"baseOffset: {base_offset} lastOffset: {base_offset + last_delta} count: {count} "
        f"baseSequence: {base_sequence} lastSequence: {last_sequence} "
        f"{_writer_text(producer_id, producer_epoch, epoch, attributes)} "
        f"deleteHorizonMs: OptionalLong{horizon} position: {position} "
        f"{'LogAppendTime' if attributes & LOG_APPEND_TIME else 'CreateTime'}: {max_time} "
        f"size: {length + LENGTH_FIELD_END} magic: {magic} "
        f"compresscodec: {_CODEC_NAMES[codec] if codec < _CODECS else batch.compression} "
        f"crc: {crc} isvalid: {'true' if crc32c(data[CRC_START:]) == crc else 'false'}"
    )


@lru_cache(maxsize=_WRITERS_MAX)
def _writer_text(producer_id: int, producer_epoch: int, leader_epoch: int, attributes: int) -> str:
    """Return what many batches' lines have in common: who wrote them, and what kind they are."""
    return (
        f"producerId: {producer_id} producerEpoch: {producer_epoch} "
        f"partitionLeaderEpoch: {leader_epoch} "
        f"isTransactional: {_boolean(bool(attributes & TRANSACTIONAL))} "
        f"isControl: {_boolean(bool(attributes & CONTROL))}"
    )


def record_text(batch: RecordBatch, record: Record) -> str:
    """Return the line for a record without its contents; with them for a control record."""
    sequence = -1
    if batch.base_sequence >= 0:
        sequence = (batch.base_sequence + record.offset - batch.base_offset) & _SEQUENCE_MASK
    keys = ",".join(key for key, _ in record.headers)
    text = (
        f"{INDENT} offset: {record.offset} {_time_name(batch)}: {record.timestamp} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence} "
        f"headerKeys: [{keys}]"
    )
    return f"{text} {control_text(record)}" if batch.is_control else text


def message_text(wrapper: LegacyMessage, message: LegacyMessage, record: Record) -> str:
    """Return the line for a message of format 0 or 1, without its contents."""
    return (
        f"{INDENT} offset: {record.offset} {_time_name(wrapper)}: {record.timestamp} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
        f"isValid: {_boolean(message.is_valid)} crc: {message.crc}"
    )


def control_text(record: Record) -> str:
    """Return the text of a control record's contents."""
    control = decode_control_record(record)
    message = control.message
    if isinstance(message, EndTxnMarker):
        return f"endTxnMarker: {control.type.name} coordinatorEpoch: {message.coordinator_epoch}"
    version = int(getattr(message, "version", 0))
    return f"{_CONTROL_TITLES[control.type]} {json_text(to_json(message, version))}"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _time_name(entry: Entry) -> str:
    if entry.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if entry.is_log_append_time else "CreateTime"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)

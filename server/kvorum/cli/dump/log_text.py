"""Text form of the batches and records of a segment or a snapshot, line by line.

Batches without compression and producer, as controllers write them, have a loop for many of them:
`plain_batches` gives what `batch_line` gives batch by batch, for about half of the cost.
"""

from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from struct import Struct
from types import MappingProxyType
from typing import Final

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
    HEADER_BYTES,
    INT32_MAX,
    LENGTH_FIELD_END,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER,
    NO_SEQUENCE,
    TRANSACTIONAL,
)
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import Entry, LegacyMessage
from kvorum.wire.records.record import INT64_MAX

NO_TIMESTAMP = -1
LOG_BYTES_MAX = 2**31 - 1
"""The part of a log that is dumped unless --max-bytes says less: all, as no segment is larger."""
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
# Producer id, its epoch and the base sequence are taken as one: they are -1, or all is left over.
_HEADER: Final = Struct(">qiibIhiqq14si")
_NOBODY: Final = b"\xff" * 14
# About how many lines are one text: they are still in the processor's cache when they are joined.
_LINES_AT_ONCE: Final = 128

RecordLines = Callable[[bytes, int, int, int], "list[str] | None"]
"""Returns the lines of a batch, given the bytes after its header, its number of records, its base
offset and its base timestamp; None for records that it leaves to others."""


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


def is_plain(entry: Entry) -> bool:
    """Return whether an entry of a log is one of these batches."""
    return (
        isinstance(entry, RecordBatch) and not entry.attributes and entry.producer_id == NO_PRODUCER
    )


def plain_batches(
    view: memoryview, begin: int, record_lines: RecordLines | None
) -> Generator[str, None, int]:
    """Yield the lines of the batches from `begin` on; return the position of the first other one.

    Many lines are one text. Without `record_lines` there is one line for each batch.
    """
    lines: list[str] = []
    unpack, add, size = _HEADER.unpack_from, lines.append, len(view)
    position = begin
    while size - position >= HEADER_BYTES:
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
            producer,
            count,
        ) = unpack(view, position)
        end = position + LENGTH_FIELD_END + length
        if (
            magic != MAGIC
            or attributes
            or producer != _NOBODY
            or length < HEADER_BYTES - LENGTH_FIELD_END
            or end > size
            or not 0 <= base_offset <= INT64_MAX - INT32_MAX
            or last_delta < 0
            or count < 0
        ):
            break
        records: list[str] = []
        if record_lines is not None:
            content = bytes(view[position + HEADER_BYTES : end])
            found = record_lines(content, count, base_offset, base_time)
            if found is None:
                break
            records = found
        add(
            f"baseOffset: {base_offset} lastOffset: {base_offset + last_delta} count: {count} "
            "baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
            f"partitionLeaderEpoch: {epoch} isTransactional: false isControl: false "
            f"deleteHorizonMs: OptionalLong.empty position: {position} CreateTime: {max_time} "
            f"size: {end - position} magic: 2 compresscodec: none crc: {crc} "
            f"isvalid: {'true' if crc32c(view[position + CRC_START : end]) == crc else 'false'}"
        )
        lines += records
        position = end
        if len(lines) >= _LINES_AT_ONCE:
            yield "\n".join(lines)
            lines.clear()
    if lines:
        yield "\n".join(lines)
    return position

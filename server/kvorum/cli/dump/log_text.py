"""Text form of the batches and records of a segment or a snapshot, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from kvorum.cli.dump.payloads import Decoder
from kvorum.metadata.json_text import json_text
from kvorum.wire.json_form import to_json
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    ControlRecordType,
    Record,
    RecordBatch,
    decode_control_record,
)
from kvorum.wire.records.legacy import Entry, LegacyMessage, read_entries

NO_TIMESTAMP = -1
UNLIMITED_BYTES = 2**31 - 1
_SEQUENCE_MASK = 0x7FFF_FFFF
_INDENT = "|"
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


@dataclass(slots=True)
class LogDump:
    """A printer of one log, with the gaps that it found.

    `decoder` is None where contents are not printed. `gaps` are pairs of offsets that are
    neighbours in the file but not consecutive; the first offset is -1 before the first record.
    """

    file_name: str
    is_deep: bool = False
    decoder: Decoder | None = None
    skips_metadata: bool = False
    bytes_max: int = UNLIMITED_BYTES
    gaps: list[tuple[int, int]] | None = None

    def lines(self, data: memoryview) -> Iterator[str]:
        """Yield one line for each batch and, if `is_deep`, one for each of its records."""
        self.gaps = []
        previous, valid_bytes = -1, 0
        shown = data[: self.bytes_max]
        for entry in read_entries(shown, is_cut_allowed=True):
            yield entry_line(entry)
            if self.is_deep:
                for record, text in records_with_texts(entry):
                    if record.offset != previous + 1:
                        self.gaps.append((previous, record.offset))
                    previous = record.offset
                    yield self._record_line(record, text, hides_contents=entry.is_control)
            valid_bytes = entry.position + entry.size
        trailing = len(shown) - valid_bytes
        if trailing > 0 and self.bytes_max == UNLIMITED_BYTES:
            yield f"Found {trailing} invalid bytes at the end of {self.file_name}"

    def _record_line(self, record: Record, text: str, *, hides_contents: bool) -> str:
        line = "" if self.skips_metadata else text
        if self.decoder is None or hides_contents:
            return line
        payload = self.decoder(record)
        prefix = f"{_INDENT} " if self.skips_metadata else " "
        if payload.key is not None:
            line += f"{prefix}key: {payload.key}"
            prefix = " "
        if payload.value is not None:
            line += f"{prefix}payload: {payload.value}"
        return line


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
    horizon = batch.delete_horizon_ms
    horizon_text = "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} "
        f"count: {batch.record_count} baseSequence: {batch.base_sequence} "
        f"lastSequence: {batch.last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {_boolean(batch.is_transactional)} "
        f"isControl: {_boolean(batch.is_control)} deleteHorizonMs: {horizon_text} "
        f"position: {batch.position} {_time_name(batch)}: {batch.max_timestamp} "
        f"size: {batch.size} magic: {batch.magic} "
        f"compresscodec: {batch.compression.name.lower()} crc: {batch.crc} "
        f"isvalid: {_boolean(batch.is_valid)}"
    )


def record_text(batch: RecordBatch, record: Record) -> str:
    """Return the line for a record without its contents; with them for a control record."""
    sequence = -1
    if batch.base_sequence >= 0:
        sequence = (batch.base_sequence + record.offset - batch.base_offset) & _SEQUENCE_MASK
    keys = ",".join(key for key, _ in record.headers)
    text = (
        f"{_INDENT} offset: {record.offset} {_time_name(batch)}: {record.timestamp} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence} "
        f"headerKeys: [{keys}]"
    )
    return f"{text} {control_text(record)}" if batch.is_control else text


def message_text(wrapper: LegacyMessage, message: LegacyMessage, record: Record) -> str:
    """Return the line for a message of format 0 or 1, without its contents."""
    return (
        f"{_INDENT} offset: {record.offset} {_time_name(wrapper)}: {record.timestamp} "
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

"""Rows of a batch whose records are decoded one by one: control records, and what is unusual."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from kvorum.metadata.errors import MetadataError, MetadataParseError
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import decode_record, record_type_name
from kvorum.spark.arrow_types import timestamp_us
from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.metadata_source.columns import COLUMNS, JSON, Origin
from kvorum.spark.metadata_source.record_types import (
    CONTROL,
    METADATA,
    SUBJECT_FIELDS,
    struct_value,
)
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import to_json
from kvorum.wire.primitives import Message
from kvorum.wire.records import Record, RecordBatch, decode_control_record


class DecodedRecord(NamedTuple):
    """A record of any kind, decoded."""

    record: Record
    record_kind: str
    type: str
    message: Message
    version: int


def decoded_one_by_one(path: str, batch: RecordBatch) -> Iterator[DecodedRecord | Damage]:
    """Yield each record of a batch decoded, and damage for what cannot be.

    Every offset of the batch is that of a record or in a damage.
    """
    expected = batch.base_offset
    reason = f"the batch holds {batch.record_count} records"
    try:
        for record in batch.records():
            if record.offset != expected:
                reason = f"a record of offset {record.offset} where {expected} belongs"
                break
            expected += 1
            yield _decoded_or_damage(path, batch, record)
    except WireError as error:
        reason = str(error)
    if expected <= batch.last_offset:
        yield _damage(path, batch, expected, batch.last_offset, reason)


def _decoded_or_damage(path: str, batch: RecordBatch, record: Record) -> DecodedRecord | Damage:
    try:
        return _decoded(record, is_control=batch.is_control)
    except (WireError, MetadataError) as error:
        return _damage(path, batch, record.offset, record.offset, str(error))


def _decoded(record: Record, *, is_control: bool) -> DecodedRecord:
    if is_control:
        control = decode_control_record(record)
        return DecodedRecord(record, CONTROL, control.type.name, control.message, control.version)
    if record.value is None:
        raise MetadataParseError("a metadata record without a value")
    message, version = decode_record(record.value)
    return DecodedRecord(record, METADATA, record_type_name(type(message)), message, version)


def decoded_rows(
    path: str, batch: RecordBatch, wanted: frozenset[str]
) -> Iterator[dict[str, Any] | Damage]:
    """Yield a row with the `wanted` columns for each record, and damage for what has none."""
    for item in decoded_one_by_one(path, batch):
        yield item if isinstance(item, Damage) else _row(batch, item, wanted)


def _row(batch: RecordBatch, decoded: DecodedRecord, wanted: frozenset[str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "offset": decoded.record.offset,
        "epoch": batch.partition_leader_epoch,
        "timestamp": timestamp_us(decoded.record.timestamp),
        "record_kind": decoded.record_kind,
        "type": decoded.type,
        "version": decoded.version,
    }
    fields = SUBJECT_FIELDS.get(decoded.type, {})
    if JSON in wanted or not wanted.isdisjoint(fields):
        value = to_json(decoded.message, decoded.version)
        row |= {column: value.get(field) for column, field in fields.items()}
        row[JSON] = json_text(value) if JSON in wanted else None
    struct = decoded.type.lower()
    if struct in wanted and COLUMNS[struct].origin is Origin.MESSAGE:
        row[struct] = struct_value(decoded.message, decoded.version)
    return row


def _damage(path: str, batch: RecordBatch, first: int, last: int, reason: str) -> Damage:
    return Damage(DamageKind.DAMAGED, path, batch.position, first, last, reason)

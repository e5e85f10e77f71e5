"""The records of a batch decoded one by one, with the damage between them."""

from collections.abc import Iterator
from typing import NamedTuple

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.metadata.errors import MetadataError, MetadataParseError
from kvorum.metadata.record_frame import decode_record, record_type_name
from kvorum.spark.metadata_source.record_types import CONTROL, METADATA
from kvorum.wire.errors import WireError
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


def _damage(path: str, batch: RecordBatch, first: int, last: int, reason: str) -> Damage:
    return Damage(DamageKind.DAMAGED, path, batch.position, first, last, reason)

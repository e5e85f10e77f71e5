"""A row for each record of a batch, from the record decoded by itself."""

from collections.abc import Iterator
from typing import Any

from kvorum.log_files.damage import Damage
from kvorum.metadata.json_text import json_text
from kvorum.spark.arrow_types import timestamp_us
from kvorum.spark.metadata_source.columns import COLUMNS, JSON, Origin
from kvorum.spark.metadata_source.decoded_records import DecodedRecord, decoded_one_by_one
from kvorum.spark.metadata_source.record_types import SUBJECT_FIELDS, struct_value
from kvorum.wire.json_form import to_json
from kvorum.wire.records import RecordBatch


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

"""Rows of records as Arrow batches, in the columns of the Spark table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from kvorum.spark.key_fields import KEY_COLUMNS
from kvorum.spark.metadata_files import MetadataFile
from kvorum.spark.record_rows import RecordRow

# The columns as a Spark schema. `timestamp` is the time when the record's batch was appended, or
# created.
SPARK_SCHEMA: Final = (
    "file string, file_kind string, offset bigint, epoch int, timestamp timestamp, "
    "record_kind string, type string, version int, topic_name string, topic_id string, "
    "partition_id int, node_id int, resource_type int, resource_name string, name string, "
    "json string"
)

# A batch is yielded when it has this many rows or this much text, which bounds a reader's memory.
# Spark's own default for Arrow batches is ten thousand rows.
BATCH_ROWS_MAX: Final = 4096
BATCH_TEXT_MAX: Final = 8 * 1024 * 1024
# Milliseconds beyond this do not fit Spark's timestamps, which count microseconds in 64 bits.
TIMESTAMP_MS_MAX: Final = (2**63 - 1) // 1000

_TEXT: Final = pa.string()
_FIELDS: Final[list[tuple[str, pa.DataType]]] = [
    ("file", _TEXT),
    ("file_kind", _TEXT),
    ("offset", pa.int64()),
    ("epoch", pa.int32()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
    ("record_kind", _TEXT),
    ("type", _TEXT),
    ("version", pa.int32()),
    ("topic_name", _TEXT),
    ("topic_id", _TEXT),
    ("partition_id", pa.int32()),
    ("node_id", pa.int32()),
    ("resource_type", pa.int32()),
    ("resource_name", _TEXT),
    ("name", _TEXT),
    ("json", _TEXT),
]
ARROW_SCHEMA: Final = pa.schema(_FIELDS)


def arrow_batches(file: MetadataFile, rows: Iterable[RecordRow]) -> Iterator[pa.RecordBatch]:
    """Yield a file's rows as Arrow batches of bounded size."""
    pending: list[RecordRow] = []
    text_length = 0
    for row in rows:
        pending.append(row)
        text_length += len(row.json)
        if len(pending) >= BATCH_ROWS_MAX or text_length >= BATCH_TEXT_MAX:
            yield _arrow_batch(file, pending)
            pending, text_length = [], 0
    if pending:
        yield _arrow_batch(file, pending)


def _arrow_batch(file: MetadataFile, rows: list[RecordRow]) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {
        "file": [file.path] * len(rows),
        "file_kind": [file.kind.value] * len(rows),
        "offset": [row.offset for row in rows],
        "epoch": [row.epoch for row in rows],
        "timestamp": [_timestamp_us(row.timestamp_ms) for row in rows],
        "record_kind": [row.record_kind for row in rows],
        "type": [row.type for row in rows],
        "version": [row.version for row in rows],
        "json": [row.json for row in rows],
    }
    for column in KEY_COLUMNS:
        columns[column] = [row.key_fields.get(column) for row in rows]
    return pa.RecordBatch.from_pydict(columns, schema=ARROW_SCHEMA)


def _timestamp_us(timestamp_ms: int) -> int | None:
    """Return a time in Spark's microseconds; None for "no timestamp" and a time out of range."""
    return timestamp_ms * 1000 if 0 <= timestamp_ms <= TIMESTAMP_MS_MAX else None

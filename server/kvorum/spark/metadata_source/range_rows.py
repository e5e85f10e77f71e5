"""Arrow batches of a range of a file, in the columns that are wanted.

Runs of batches are read at once, by column; a batch in which something is unusual is decoded
record by record, so that every damaged record is named. Only what the columns need is read: no
record where they come from headers, no body where they come from headers and frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kvorum.metadata.errors import MetadataError
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record
from kvorum.metadata.record_types import record_type
from kvorum.spark.arrow_types import arrow_schema
from kvorum.spark.columnar.arrow_values import timestamps
from kvorum.spark.columnar.body_columns import body_columns
from kvorum.spark.columnar.record_run import RecordRun, read_run
from kvorum.spark.columnar.varints import Flags, Ints
from kvorum.spark.conditions import ANY, Condition
from kvorum.spark.files.damage import Damage
from kvorum.spark.files.log_file import LogFile
from kvorum.spark.files.modes import Mode, admit
from kvorum.spark.files.range_reader import BatchOrDamage, read_range
from kvorum.spark.files.ranges import FileRange
from kvorum.spark.metadata_source.columns import (
    COLUMNS,
    DAMAGE,
    JSON,
    Column,
    Origin,
    types_of,
)
from kvorum.spark.metadata_source.decoded_rows import decoded_rows
from kvorum.spark.metadata_source.filters import BODY_COLUMNS, BatchFilter, RowFilter
from kvorum.spark.metadata_source.record_types import METADATA, NAMES, NUMBERS
from kvorum.spark.metadata_source.struct_types import struct_value
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import to_json
from kvorum.wire.records import RecordBatch

RUN_BYTES_MAX: Final = 2 * 1024 * 1024
"""How many bytes of batches are read at once: enough for the price of a column to be small."""

ROWS_MAX: Final = 16 * 1024
"""The most rows of an Arrow batch; Spark's own default is ten thousand."""

# A type's name at the index that is the type's number.
_TYPE_NAMES: Final[Any] = pa.array(
    [NAMES.get(number) for number in range(max(NAMES) + 1)], pa.string()
)


class Query(NamedTuple):
    """What is wanted of a range."""

    columns: tuple[Column, ...]
    row_filter: RowFilter
    mode: Mode
    file_system_options: Mapping[str, Any]


class _UnusualRunError(Exception):
    """The records of a run cannot be read by column."""


def arrow_batches(unit: FileRange, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range in order, in Arrow batches of bounded size.

    Raises `DamagedFileError` in the mode FAILFAST.
    """
    items = read_range(unit, file_system_options=query.file_system_options)
    yield from arrow_rows(unit.file, items, query)


def arrow_rows(
    file: LogFile, items: Iterable[BatchOrDamage], query: Query
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches of one file in order, as `arrow_batches` does."""
    reader = _RowReader(file, query)
    for item in admit(reader.pieces(items), query.mode):
        rows = reader.damage_row(item) if isinstance(item, Damage) else item
        for start in range(0, rows.num_rows, ROWS_MAX):
            yield rows.slice(start, ROWS_MAX)


class _RowReader:
    """The way from batches to Arrow batches, for one file or a range of it."""

    def __init__(self, file: LogFile, query: Query) -> None:
        self._file = file
        self._columns = query.columns
        self._filter = query.row_filter
        self._batch_filter = BatchFilter(query.row_filter)
        self._schema = arrow_schema(types_of(query.columns))
        self._wanted = frozenset(column.name for column in query.columns)
        self._body_columns = [
            column.body for column in query.columns if column.origin is Origin.BODY
        ]
        origins = {column.origin for column in query.columns}
        filtered = {"timestamp", "type", *BODY_COLUMNS} & set(query.row_filter.conditions)
        self._needs_records = bool(filtered) or not origins <= _OF_HEADERS

    def pieces(self, items: Iterable[BatchOrDamage]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of batches that the filter admits, and the damage between them."""
        run: list[RecordBatch] = []
        size = 0
        for item in items:
            if isinstance(item, Damage):
                yield from self._rows_of(run)
                run, size = [], 0
                yield item
            elif self._batch_filter.admits(item):
                if item.is_control or size + item.size > RUN_BYTES_MAX:
                    yield from self._rows_of(run)
                    run, size = [], 0
                if item.is_control:
                    yield from self._decoded(item)
                else:
                    run.append(item)
                    size += item.size
        yield from self._rows_of(run)

    def _rows_of(self, run: list[RecordBatch]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of batches without control records."""
        if not run:
            return
        try:
            yield self._by_column(run)
        except (_UnusualRunError, WireError, MetadataError):
            if len(run) == 1:
                yield from self._decoded(run[0])
                return
            for batch in run:
                yield from self._rows_of([batch])

    def _by_column(self, run: list[RecordBatch]) -> pa.RecordBatch:
        if any(batch.record_count != batch.last_offset_delta + 1 for batch in run):
            raise _UnusualRunError
        if not self._needs_records:
            return self._of_headers(run)
        records = read_run(run)
        if records is None or not _has_all_offsets(run, records) or not _are_known(records):
            raise _UnusualRunError
        return self._of_run(self._narrowed(records))

    def _of_headers(self, run: list[RecordBatch]) -> pa.RecordBatch:
        """Return rows of which no record need be read."""
        counts = [batch.record_count for batch in run]
        offsets = _offsets_of(run)
        epochs = np.repeat(np.array([batch.partition_leader_epoch for batch in run]), counts)
        kept = self._filter.conditions.get("offset", ANY).matching(offsets)
        return self._assembled(
            {"offset": pa.array(offsets[kept]), "epoch": pa.array(epochs[kept], pa.int32())},
            int(kept.sum()),
        )

    def _narrowed(self, records: RecordRun) -> RecordRun:
        """Return the records that the conditions on headers, frames and bodies leave."""
        conditions = self._filter.conditions
        kept = conditions.get("offset", ANY).matching(records.offsets)
        kept &= conditions.get("timestamp", ANY).matching(records.timestamps)
        if self._filter.types is not None:
            numbers = [NUMBERS[name] for name in self._filter.types if name in NUMBERS]
            kept &= np.isin(records.types, numbers)
        records = _chosen(records, kept)
        for name in BODY_COLUMNS:
            condition = conditions.get(name)
            if condition is not None and len(records.offsets):
                records = _narrowed_by_body(records, name, condition)
        return records

    def _of_run(self, records: RecordRun) -> pa.RecordBatch:
        arrays: dict[str, Any] = {
            "offset": pa.array(records.offsets),
            "epoch": pa.array(records.epochs.astype(np.int32)),
            "version": pa.array(records.versions.astype(np.int32)),
        }
        if "timestamp" in self._wanted:
            arrays["timestamp"] = timestamps(records.timestamps)
        if "type" in self._wanted:
            arrays["type"] = _TYPE_NAMES.take(pa.array(records.types))
        if len(records.offsets):
            bodies = body_columns(records, self._body_columns)
            arrays |= {
                column.name: array for column, array in zip(self._body_columns, bodies, strict=True)
            }
            arrays |= self._of_messages(records)
        return self._assembled(arrays, len(records.offsets))

    def _of_messages(self, records: RecordRun) -> dict[str, Any]:
        """Return the columns for which every record is decoded whole."""
        columns = [column for column in self._columns if column.origin is Origin.MESSAGE]
        if not columns:
            return {}
        messages = [
            decode_record(records.data[start - SHORT_HEADER_BYTES : end].tobytes())
            for start, end in zip(records.starts.tolist(), records.ends.tolist(), strict=True)
        ]
        arrays: dict[str, Any] = {}
        types = records.types.tolist()
        for column in columns:
            if column.name == JSON:
                arrays[JSON] = [json_text(to_json(*message)) for message in messages]
                continue
            number = NUMBERS.get(column.name.upper())
            arrays[column.name] = [
                struct_value(*message) if kind == number else None
                for kind, message in zip(types, messages, strict=True)
            ]
        return arrays

    def _decoded(self, batch: RecordBatch) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of one batch, its records decoded one by one."""
        rows: list[dict[str, Any]] = []
        for row in decoded_rows(self._file.path, batch, self._wanted):
            if isinstance(row, Damage):
                yield from self._of_rows(rows)
                rows = []
                yield row
            else:
                rows.append(row)
        yield from self._of_rows(rows)

    def _of_rows(self, rows: list[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
        if rows:
            arrays = {name: [row.get(name) for row in rows] for name in self._wanted}
            yield self._assembled(arrays, len(rows))

    def damage_row(self, damage: Damage) -> pa.RecordBatch:
        """Return one row that stands for damage."""
        return self._assembled(
            {"offset": [damage.first_offset], DAMAGE: [damage.text], "record_kind": [None]}, 1
        )

    def _assembled(self, arrays: Mapping[str, Any], count: int) -> pa.RecordBatch:
        """Return the columns in their order; those that are not in `arrays` are constant."""
        constant = _constants(self._file)
        arrow: Any = pa
        found: list[Any] = []
        for column in self._columns:
            values = arrays.get(column.name)
            kind: Any = column.type
            if column.origin is Origin.FILE:
                found.append(arrow.repeat(pa.scalar(constant[column.name], kind), count))
            elif values is None and column.name == "record_kind":
                found.append(arrow.repeat(pa.scalar(METADATA, kind), count))
            elif values is None:
                found.append(arrow.nulls(count, kind))
            elif isinstance(values, list):
                found.append(arrow.array(values, column.type))
            else:
                found.append(values.cast(column.type))
        rows: pa.RecordBatch = arrow.RecordBatch.from_arrays(found, schema=self._schema)
        return rows


_OF_HEADERS: Final = frozenset({Origin.FILE, Origin.DAMAGE, Origin.BATCH})


def _constants(file: LogFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "cluster_id": file.cluster_id,
        "node_id": file.node_id,
        "file_kind": file.kind.value,
    }


def _has_all_offsets(run: list[RecordBatch], records: RecordRun) -> bool:
    """Return whether the records of each batch are numbered without a gap."""
    return bool(np.array_equal(_offsets_of(run), records.offsets))


def _offsets_of(run: list[RecordBatch]) -> Ints:
    """Return the offsets of the records of batches, in each of which no offset is missing."""
    counts = np.array([batch.record_count for batch in run], np.int64)
    bases = np.array([batch.base_offset for batch in run], np.int64)
    firsts = np.cumsum(counts) - counts
    offsets: Ints = np.arange(int(counts.sum())) + np.repeat(bases - firsts, counts)
    return offsets


def _are_known(records: RecordRun) -> bool:
    """Return whether every type and version is known."""
    groups = np.unique(records.types << 8 | records.versions)
    return all(_is_known(int(group >> 8), int(group & 0xFF)) for group in groups)


def _is_known(number: int, version: int) -> bool:
    if number not in NAMES:
        return False
    kind = record_type(number)
    return kind.MIN_VERSION <= version <= kind.MAX_VERSION


def _chosen(records: RecordRun, kept: Any) -> RecordRun:
    if kept.all():
        return records
    return RecordRun(records.data, *(array[kept] for array in records[1:]))


def _narrowed_by_body(records: RecordRun, name: str, condition: Condition) -> RecordRun:
    """Return the records whose value of one column satisfies a condition."""
    column = COLUMNS[name].body
    # No other type of record has a value, so none of them satisfies the condition.
    records = _chosen(records, np.isin(records.types, list(column.fields)))
    if not len(records.offsets):
        return records
    (values,) = body_columns(records, [column])
    return _chosen(records, _matching(values, condition))


def _matching(values: Any, condition: Condition) -> Flags:
    """Return which values satisfy a condition; each different one is looked at once."""
    encoded = values.dictionary_encode()
    is_match = np.array([condition.matches(value) for value in encoded.dictionary.to_pylist()])
    # Null has no place in the dictionary, and never matches.
    places: Ints = encoded.indices.fill_null(len(is_match)).to_numpy(zero_copy_only=False)
    return np.append(is_match, [False])[places].astype(np.bool_)

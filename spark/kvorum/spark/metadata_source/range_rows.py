"""Arrow batches of a range of a file, in the columns that are wanted.

Runs of batches are read at once, by column; a batch in which something is unusual is decoded
record by record, so that every damaged record is named. Only what the columns need is read: no
record where they come from headers, no body where they come from headers and frames.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kvorum.log_files.damage import Damage
from kvorum.log_files.find import LogFile
from kvorum.log_files.ranges import FileRange
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record, record_type
from kvorum.spark.arrow_types import arrow_schema
from kvorum.spark.columnar.arrow_values import timestamps
from kvorum.spark.columnar.batch_block import BatchBlock
from kvorum.spark.columnar.body_columns import body_columns
from kvorum.spark.columnar.field_places import Ints
from kvorum.spark.columnar.range_reader import BlockOrDamage, chosen_blocks, read_blocks
from kvorum.spark.columnar.record_places import RecordRun, read_run
from kvorum.spark.conditions import ANY
from kvorum.spark.damage_modes import admit
from kvorum.spark.metadata_source.columns import DAMAGE, JSON, Column, Origin, file_values, types_of
from kvorum.spark.metadata_source.decoded_rows import decoded_rows
from kvorum.spark.metadata_source.filters import BODY_COLUMNS, BatchFilter
from kvorum.spark.metadata_source.query import Query
from kvorum.spark.metadata_source.record_types import METADATA, NAMES, NUMBERS, struct_value
from kvorum.spark.metadata_source.run_filter import narrowed
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import to_json
from kvorum.wire.records import RecordBatch

ROWS_MAX: Final = 16 * 1024
"""The most rows of an Arrow batch; Spark's own default is ten thousand."""

SEARCH_PARTS: Final = 16
"""Into how many parts batches are divided to find the one that cannot be read by column."""

_OF_HEADERS: Final = frozenset({Origin.FILE, Origin.DAMAGE, Origin.BATCH})
"""The origins of columns that need no record."""
# A type's name at the index that is the type's number.
_TYPE_NAMES: Final[Any] = pa.array(
    [NAMES.get(number) for number in range(max(NAMES) + 1)], pa.string()
)


class _Rows(NamedTuple):
    """Rows of metadata records in ascending order of their offsets."""

    offsets: Ints
    batch: pa.RecordBatch


class _UnusualRunError(Exception):
    """The records of a run cannot be read by column."""


def arrow_batches(unit: FileRange, query: Query) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range in order, in Arrow batches of bounded size.

    Raises `DamagedFileError` in the mode FAILFAST.
    """
    items = read_blocks(unit, file_system_options=query.file_system_options)
    yield from arrow_rows(unit.file, items, query)


def arrow_rows(
    file: LogFile, items: Iterable[BlockOrDamage], query: Query
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches of one file in order, as `arrow_batches` does."""
    reader = _RowReader(file, query)
    for item in admit(reader.pieces(items), query.mode):
        rows = reader.damage_row(item) if isinstance(item, Damage) else item
        yield from (rows.slice(start, ROWS_MAX) for start in range(0, rows.num_rows, ROWS_MAX))


class _RowReader:
    """The way from batches to Arrow batches, for one file or a range of it."""

    def __init__(self, file: LogFile, query: Query) -> None:
        self._file = file
        self._columns = query.columns
        self._filter = query.row_filter
        self._batch_filter = BatchFilter(query.row_filter)
        self._of_file = file_values(file)
        self._known_repeated: dict[str, Any] = {}
        self._schema = arrow_schema(types_of(query.columns))
        self._wanted = frozenset(column.name for column in query.columns)
        self._body_columns = [
            column.body for column in query.columns if column.origin is Origin.BODY
        ]
        origins = {column.origin for column in query.columns}
        filtered = {"timestamp", "type", *BODY_COLUMNS} & set(query.row_filter.conditions)
        self._needs_records = bool(filtered) or not origins <= _OF_HEADERS

    def pieces(self, items: Iterable[BlockOrDamage]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of batches that the filter admits, and the damage between them."""
        for item in chosen_blocks(items, self._batch_filter.admitted):
            if isinstance(item, Damage):
                yield item
            else:
                yield from self._rows_of(item)

    def _rows_of(self, block: BatchBlock) -> Iterator[pa.RecordBatch | Damage]:
        if not block.batch_count:
            return
        is_control = block.is_control
        try:
            rows = self._by_column(block.where(~is_control))
        except (_UnusualRunError, WireError, MetadataError):
            if block.batch_count == 1:
                yield from self._decoded(next(block.batches()))
                return
            for part in block.parts(SEARCH_PARTS):
                yield from self._rows_of(part)
        else:
            yield from self._with_control(rows, block.where(is_control))

    def _with_control(self, rows: _Rows, control: BatchBlock) -> Iterator[pa.RecordBatch | Damage]:
        """Yield rows in the order of the log, those of control batches between the others."""
        places = np.searchsorted(rows.offsets, control.column("base_offset"))
        begin = 0
        for batch, place in zip(control.batches(), places.tolist(), strict=True):
            yield rows.batch.slice(begin, place - begin)
            yield from self._decoded(batch)
            begin = place
        yield rows.batch.slice(begin)

    def _by_column(self, block: BatchBlock) -> _Rows:
        """Return the rows of batches without control records."""
        if (block.column("record_count") != block.column("last_offset_delta") + 1).any():
            raise _UnusualRunError
        if not self._needs_records:
            return self._of_headers(block)
        records = read_run(block, self._batch_filter.needles)
        if records is None or not records.has_all_offsets or not _are_known(records):
            raise _UnusualRunError
        return self._of_run(narrowed(records, self._filter))

    def _of_headers(self, block: BatchBlock) -> _Rows:
        """Return rows of which no record need be read."""
        offsets = _offsets_of(block)
        epochs = np.repeat(block.column("partition_leader_epoch"), block.column("record_count"))
        kept = self._filter.conditions.get("offset", ANY).matching(offsets)
        arrays = {"offset": pa.array(offsets[kept]), "epoch": pa.array(epochs[kept], pa.int32())}
        return _Rows(offsets[kept], self._assembled(arrays, int(kept.sum())))

    def _of_run(self, records: RecordRun) -> _Rows:
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
        return _Rows(records.offsets, self._assembled(arrays, len(records.offsets)))

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
            names = self._wanted - self._of_file.keys()
            arrays = {name: [row.get(name) for row in rows] for name in names}
            yield self._assembled(arrays, len(rows))

    def damage_row(self, damage: Damage) -> pa.RecordBatch:
        """Return one row that stands for damage."""
        return self._assembled(
            {"offset": [damage.first_offset], DAMAGE: [damage.text], "record_kind": [None]}, 1
        )

    def _assembled(self, arrays: Mapping[str, Any], count: int) -> pa.RecordBatch:
        """Return the columns in their order; those that are not in `arrays` are constant."""
        arrow: Any = pa
        constants = {**self._of_file, "record_kind": METADATA}
        found: list[Any] = []
        for column in self._columns:
            values: Any = arrays.get(column.name, constants.get(column.name))
            if isinstance(values, list):
                values = arrow.array(values, column.type)
            elif values is None or isinstance(values, str | int):
                values = self._repeated(column, values, count)
            found.append(values if values.type == column.type else values.cast(column.type))
        rows: pa.RecordBatch = arrow.RecordBatch.from_arrays(found, schema=self._schema)
        return rows

    def _repeated(self, column: Column, value: str | int | None, count: int) -> Any:
        """Return a column of one value; the longest one that was made has the others within it."""
        known = self._known_repeated.get(column.name)
        if known is None or len(known) < count:
            arrow: Any = pa
            known = arrow.repeat(arrow.scalar(value, column.type), count)
            self._known_repeated[column.name] = known
        return known.slice(0, count)


def _offsets_of(block: BatchBlock) -> Ints:
    """Return the offsets of the records of batches, in each of which no offset is missing."""
    counts = block.column("record_count")
    firsts = np.cumsum(counts) - counts
    offsets: Ints = np.repeat(block.column("base_offset") - firsts, counts)
    return offsets + np.arange(len(offsets))


def _are_known(records: RecordRun) -> bool:
    """Return whether every type and version is known."""
    kinds = np.flatnonzero(np.bincount(records.kinds))
    return all(_is_known(kind >> 8, kind & 0xFF) for kind in kinds.tolist())


def _is_known(number: int, version: int) -> bool:
    if number not in NAMES:
        return False
    kind = record_type(number)
    return kind.MIN_VERSION <= version <= kind.MAX_VERSION

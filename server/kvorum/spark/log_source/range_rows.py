"""Arrow batches of the records of a range of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kvorum.spark.arrow_types import arrow_schema
from kvorum.spark.columnar.arrow_values import Array
from kvorum.spark.columnar.record_places import RecordPlaces, place_records
from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.files.modes import Mode, admit
from kvorum.spark.files.range_reader import read_range
from kvorum.spark.files.ranges import FileRange
from kvorum.spark.log_source.columns import DAMAGE, FILE_VALUES, types_of
from kvorum.spark.log_source.filters import NO_FILTER, LogFilter
from kvorum.spark.log_source.record_columns import RecordColumns
from kvorum.spark.log_source.transactions import TransactionOutcomes
from kvorum.wire.errors import CorruptBatchError, WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK

RUN_RECORDS_MAX: Final = 16_384
"""A run of batches, which becomes one Arrow batch, ends once it has more records than this."""
RUN_BYTES_MAX: Final = 8 * 1024 * 1024
"""The same for bytes; packed ones count `PACKED_FACTOR` times."""
PACKED_FACTOR: Final = 8
HEADERS: Final = "headers"


class Reading(NamedTuple):
    """What is read of a range, and how; `columns` are names of `ARROW_TYPES`.

    Compaction leaves gaps between offsets. In a log that `has_gaps` they are no damage.
    """

    columns: Sequence[str]
    mode: Mode
    has_gaps: bool = True
    file_system_options: Mapping[str, Any] = MappingProxyType({})
    row_filter: LogFilter = NO_FILTER


def range_rows(unit: FileRange, reading: Reading) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range; in the permissive mode a damage is a row of its own.

    Raises `DamagedFileError` by mode, and OSError where transactions cannot be followed.
    """
    options = reading.file_system_options
    maker = _RowMaker(unit, reading, TransactionOutcomes(unit, options))
    items = read_range(unit, has_gaps=reading.has_gaps, file_system_options=options)
    for piece in admit(maker.pieces(items), reading.mode):
        yield maker.damage_row(piece) if isinstance(piece, Damage) else piece


class _RowMaker:
    """The way from batches to Arrow batches, for one range."""

    def __init__(self, unit: FileRange, reading: Reading, outcomes: TransactionOutcomes) -> None:
        self._file = unit.file
        self._columns = reading.columns
        self._filter = reading.row_filter
        self._schema = arrow_schema(types_of(reading.columns))
        self._outcomes = outcomes

    def pieces(self, items: Iterator[RecordBatch | Damage]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of batches, and the damage between them."""
        for part in _runs(self._admitted(items)):
            if isinstance(part, Damage):
                yield part
            else:
                yield from self._rows_or_damage(part)

    def _admitted(self, items: Iterable[RecordBatch | Damage]) -> Iterator[RecordBatch | Damage]:
        """Yield the batches that the filter admits, and the damage between them."""
        for item in items:
            if isinstance(item, Damage) or self._filter.admits_batch(item):
                yield item

    def damage_row(self, damage: Damage) -> pa.RecordBatch:
        """Return one row that stands for damage."""
        row = {name: value(self._file) for name, value in FILE_VALUES.items()}
        row |= {"offset": damage.first_offset, DAMAGE: damage.text}
        return pa.RecordBatch.from_pylist([row], schema=self._schema)

    def _rows_or_damage(self, run: list[RecordBatch]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of a run, or of each batch that can be read, and damage for the others."""
        try:
            rows = self._rows(run)
        except WireError as error:
            if len(run) > 1:
                for batch in run:
                    yield from self._rows_or_damage([batch])
                return
            yield self._damage(run[0], str(error))
        else:
            if rows.num_rows:
                yield rows

    def _rows(self, run: list[RecordBatch]) -> pa.RecordBatch:
        places = place_records(run)
        if places is None:
            raise _misfit(run)
        columns = self._kept_values(run, places)
        return pa.RecordBatch.from_pydict(columns, schema=self._schema)

    def _kept_values(self, run: list[RecordBatch], places: RecordPlaces) -> dict[str, Array]:
        """Return the columns of the records that the filter admits."""
        is_kept = self._filter.matching(places)
        if is_kept.all():
            return self._values(run, places, self._columns)
        # Headers are read of all records: one that cannot be read makes its batch damage.
        headers = self._values(run, places, [name for name in self._columns if name == HEADERS])
        others = [name for name in self._columns if name != HEADERS]
        kept = self._values(run, places.where(is_kept), others)
        return kept | {name: array.filter(pa.array(is_kept)) for name, array in headers.items()}

    def _values(
        self, run: list[RecordBatch], places: RecordPlaces, columns: Iterable[str]
    ) -> dict[str, Array]:
        found = RecordColumns(self._file, run, places, self._outcomes)
        return {name: found.column(name) for name in columns}

    def _damage(self, batch: RecordBatch, reason: str) -> Damage:
        first, last = batch.base_offset, batch.last_offset
        return Damage(DamageKind.DAMAGED, self._file.path, batch.position, first, last, reason)


def _runs(items: Iterator[RecordBatch | Damage]) -> Iterator[list[RecordBatch] | Damage]:
    """Yield runs of batches, and the damage between them."""
    run: list[RecordBatch] = []
    records = size = 0
    for item in items:
        if run and (isinstance(item, Damage) or records > RUN_RECORDS_MAX or size > RUN_BYTES_MAX):
            yield run
            run, records, size = [], 0, 0
        if isinstance(item, Damage):
            yield item
            continue
        run.append(item)
        records += item.record_count
        size += item.size * (PACKED_FACTOR if item.attributes & COMPRESSION_MASK else 1)
    if run:
        yield run


def _misfit(run: list[RecordBatch]) -> WireError:
    """Return the error of batches whose records do not fit: the codec's, which says where."""
    try:
        for batch in run:
            for _ in batch.records():
                pass
    except WireError as error:
        return error
    return CorruptBatchError("record", "does not fit into its batch", offset=run[0].position)

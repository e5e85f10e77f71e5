"""Arrow batches of the records of a range of a file.

Each run of batches, and each run of messages of the formats 0 and 1, becomes one Arrow batch.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.entry_reader import EntryOrDamage
from kvorum.log_files.ranges import FileRange
from kvorum.spark.arrow_types import arrow_schema
from kvorum.spark.columnar.arrow_values import Array
from kvorum.spark.columnar.batch_block import block_of
from kvorum.spark.columnar.range_reader import read_entries
from kvorum.spark.columnar.record_places import (
    UNPACKED_BYTES_MAX,
    RecordPlaces,
    find_records,
    place_messages,
    place_records,
)
from kvorum.spark.damage_modes import Mode, admit
from kvorum.spark.log_source.columns import DAMAGE, FILE_VALUES, types_of
from kvorum.spark.log_source.filters import NO_FILTER, LogFilter
from kvorum.spark.log_source.record_columns import RecordColumns
from kvorum.spark.log_source.transactions import TransactionOutcomes
from kvorum.wire.errors import CorruptBatchError, WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import COMPRESSION_MASK
from kvorum.wire.records.legacy import Entry, LegacyMessage

HEADERS: Final = "headers"
RUN_RECORDS_MAX: Final = 16_384
"""A run of entries, which becomes one Arrow batch, ends once it has more records than this."""
RUN_BYTES_MAX: Final = 8 * 1024 * 1024
"""The same for bytes; packed ones count `PACKED_FACTOR` times."""
PACKED_FACTOR: Final = 8


class Reading(NamedTuple):
    """The part of a range that is read, and the way; `columns` are names of `ARROW_TYPES`.

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
    items = read_entries(unit, has_gaps=reading.has_gaps, file_system_options=options)
    for piece in admit(maker.pieces(items), reading.mode):
        yield maker.damage_row(piece) if isinstance(piece, Damage) else piece


def _runs(items: Iterable[EntryOrDamage]) -> Iterator[list[Entry] | Damage]:
    """Yield runs of entries, each of one kind, and the damage between."""
    run: list[Entry] = []
    records = size = 0
    for item in items:
        is_full = records > RUN_RECORDS_MAX or size > RUN_BYTES_MAX
        if run and (is_full or type(item) is not type(run[0])):
            yield run
            run, records, size = [], 0, 0
        if isinstance(item, Damage):
            yield item
            continue
        run.append(item)
        records += item.record_count if isinstance(item, RecordBatch) else 1
        size += item.size * (PACKED_FACTOR if item.attributes & COMPRESSION_MASK else 1)
    if run:
        yield run


def _places_of(run: Sequence[Entry]) -> RecordPlaces:
    """Return where the records are; `WireError` where one of the entries cannot be read."""
    batches = [entry for entry in run if isinstance(entry, RecordBatch)]
    if not batches:
        return place_messages([entry for entry in run if isinstance(entry, LegacyMessage)])
    found = find_records(block_of(batches))
    placed = None if found is None else place_records(found)
    if placed is None:
        raise _misfit(batches)
    return placed


def _misfit(batches: Sequence[RecordBatch]) -> WireError:
    """Return the error of batches whose records do not fit: the codec's, which says where."""
    try:
        for batch in batches:
            for _ in batch.records(UNPACKED_BYTES_MAX):
                pass
    except WireError as error:
        return error
    return CorruptBatchError("record", "does not fit into its batch", offset=batches[0].position)


class _RowMaker:
    """The way from batches to Arrow batches, for one range."""

    def __init__(self, unit: FileRange, reading: Reading, outcomes: TransactionOutcomes) -> None:
        self._file = unit.file
        self._columns = reading.columns
        self._filter = reading.row_filter
        self._schema = arrow_schema(types_of(reading.columns))
        self._outcomes = outcomes

    def pieces(self, items: Iterator[EntryOrDamage]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of batches, and the damage between them."""
        for run in _runs(self._chosen(items) if self._filter.conditions else items):
            if isinstance(run, Damage):
                yield run
            else:
                yield from self._rows_or_damage(run)

    def _chosen(self, items: Iterable[EntryOrDamage]) -> Iterator[EntryOrDamage]:
        """Yield the entries that the filter admits, and all damage.

        An entry is a view of all bytes that were read with it. These would stay in memory until
        enough others are admitted, so each has a copy of its own.
        """
        for item in items:
            if isinstance(item, Damage):
                yield item
            elif self._filter.admits_entry(item):
                yield item._replace(data=memoryview(bytes(item.data)))

    def damage_row(self, damage: Damage) -> pa.RecordBatch:
        """Return one row that stands for damage."""
        row = {name: value(self._file) for name, value in FILE_VALUES.items()}
        row |= {"offset": damage.first_offset, DAMAGE: damage.text}
        return pa.RecordBatch.from_pylist([row], schema=self._schema)

    def _rows_or_damage(self, run: Sequence[Entry]) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of a run, or of each entry that can be read, and damage for the others."""
        try:
            rows = self._rows(run)
        except WireError as error:
            if len(run) == 1:
                yield self._damage(run[0], str(error))
                return
            for entry in run:
                yield from self._rows_or_damage([entry])
        else:
            if rows.num_rows:
                yield rows

    def _rows(self, run: Sequence[Entry]) -> pa.RecordBatch:
        """Return the rows that the filter admits; `WireError` where an entry cannot be read."""
        places = _places_of(run)
        is_kept = self._filter.matching(places)
        if is_kept.all():
            columns = self._values(run, places, self._columns)
        else:
            # Headers are read of all records: one that cannot be read makes its batch damage.
            checked = self._values(run, places, [name for name in self._columns if name == HEADERS])
            others = [name for name in self._columns if name != HEADERS]
            columns = self._values(run, places.where(is_kept), others)
            columns |= {name: array.filter(pa.array(is_kept)) for name, array in checked.items()}
        return pa.RecordBatch.from_pydict(columns, schema=self._schema)

    def _values(
        self, run: Sequence[Entry], places: RecordPlaces, columns: Iterable[str]
    ) -> dict[str, Array]:
        found = RecordColumns(self._file, run, places, self._outcomes)
        return {name: found.column(name) for name in columns}

    def _damage(self, entry: Entry, reason: str) -> Damage:
        first = entry.base_offset if isinstance(entry, RecordBatch) else entry.offset
        last = entry.last_offset
        return Damage(DamageKind.DAMAGED, self._file.path, entry.position, first, last, reason)

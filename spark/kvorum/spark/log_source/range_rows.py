"""Arrow batches of the records of a range of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kvorum.spark.arrow_types import arrow_schema
from kvorum.spark.columnar.arrow_values import Array
from kvorum.spark.columnar.record_places import RecordPlaces
from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.files.entry_reader import EntryOrDamage
from kvorum.spark.files.modes import Mode, admit
from kvorum.spark.files.range_reader import read_entries
from kvorum.spark.files.ranges import FileRange
from kvorum.spark.log_source.columns import DAMAGE, FILE_VALUES, types_of
from kvorum.spark.log_source.filters import NO_FILTER, LogFilter
from kvorum.spark.log_source.runs import Run, runs
from kvorum.spark.log_source.transactions import TransactionOutcomes
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.legacy import Entry, LegacyMessage

HEADERS: Final = "headers"


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
        for part in runs(self._admitted(items)):
            if isinstance(part, Damage):
                yield part
            else:
                yield from self._rows_or_damage(part)

    def _admitted(self, items: Iterable[EntryOrDamage]) -> Iterator[EntryOrDamage]:
        """Yield the batches that the filter admits, and the damage between them."""
        for item in items:
            if isinstance(item, Damage) or self._is_admitted(item):
                yield item

    def _is_admitted(self, entry: Entry) -> bool:
        if isinstance(entry, LegacyMessage):
            return self._filter.admits_message(entry)
        return self._filter.admits_batch(entry)

    def damage_row(self, damage: Damage) -> pa.RecordBatch:
        """Return one row that stands for damage."""
        row = {name: value(self._file) for name, value in FILE_VALUES.items()}
        row |= {"offset": damage.first_offset, DAMAGE: damage.text}
        return pa.RecordBatch.from_pylist([row], schema=self._schema)

    def _rows_or_damage(self, run: Run) -> Iterator[pa.RecordBatch | Damage]:
        """Yield the rows of a run, or of each entry that can be read, and damage for the others."""
        try:
            rows = self._rows(run)
        except WireError as error:
            if len(run.entries) == 1:
                yield self._damage(run.entries[0], str(error))
                return
            for part in run.parts():
                yield from self._rows_or_damage(part)
        else:
            if rows.num_rows:
                yield rows

    def _rows(self, run: Run) -> pa.RecordBatch:
        """Return the rows that the filter admits; `WireError` where an entry cannot be read."""
        places = run.places()
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

    def _values(self, run: Run, places: RecordPlaces, columns: Iterable[str]) -> dict[str, Array]:
        found = run.columns(self._file, places, self._outcomes)
        return {name: found.column(name) for name in columns}

    def _damage(self, entry: Entry, reason: str) -> Damage:
        first = entry.base_offset if isinstance(entry, RecordBatch) else entry.offset
        last = entry.last_offset
        return Damage(DamageKind.DAMAGED, self._file.path, entry.position, first, last, reason)

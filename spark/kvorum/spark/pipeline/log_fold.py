"""One pass of the fold over a cluster's log: records in, rows by table and day out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kvorum.spark.history import HISTORY_TABLES, HistoryRow, MetadataHistory
from kvorum.spark.history.errors import HistoryError
from kvorum.spark.pipeline.day_rows import DayRows
from kvorum.spark.pipeline.errors import UnreconciledError
from kvorum.spark.pipeline.layout import day_of
from kvorum.spark.pipeline.log_reading import LogReading


class RowPlace:
    """The table of each type of row, and the day of a row: that of the time when it began."""

    TABLES: Final[Mapping[type[Any], tuple[str, int]]] = MappingProxyType(
        {
            row_type: (
                name,
                next(
                    index
                    for index, column in enumerate(row_type._fields)
                    if column in {"from_time", "time"}
                ),
            )
            for name, row_type in HISTORY_TABLES.items()
        }
    )

    @classmethod
    def of(cls, row: HistoryRow) -> tuple[str, int | None]:
        """Return the table and the day of a row, in days since 1970."""
        table, time = cls.TABLES[type(row)]
        timestamp_ms: Any = row[time]
        return table, day_of(timestamp_ms)


class StoppedError(Exception):
    """A record contradicts those before it, so that the log has no history from there on."""

    def __init__(self, *, path: str, offset: int, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason


class FoldCounts:
    """The number of records by kind."""

    def __init__(self) -> None:
        self.control = 0
        self.metadata = 0


def fold(history: MetadataHistory, reading: LogReading, rows: DayRows) -> FoldCounts:
    """Add the rows of all records of `reading` to `rows`.

    Raises `StoppedError` for a record that cannot follow, after which `history` and `rows` are of
    no use, and `UnreconciledError` where records of the files did not get here.
    """
    counts = FoldCounts()
    begin = history.next_offset
    add, place, add_row = history.add, RowPlace.of, rows.add_row
    offset = begin
    for record in reading.records():
        offset = record.offset
        try:
            for row in add(record):
                add_row(*place(row), row)
        except HistoryError as error:
            raise StoppedError(path=reading.path, offset=offset, reason=str(error)) from error
        if record.message.API_KEY is None:
            counts.control += 1
        else:
            counts.metadata += 1
    _reconcile(reading, counts, folded=history.next_offset - begin)
    return counts


def _reconcile(reading: LogReading, counts: FoldCounts, *, folded: int) -> None:
    if not folded == reading.handed_count == counts.control + counts.metadata:
        raise UnreconciledError(
            f"{reading.path}: {reading.offered_count} records by the headers of batches, "
            f"{reading.withheld_count} behind damage, but {counts.control} control and "
            f"{counts.metadata} metadata records were folded"
        )

"""Rows that remain after filters are pushed down."""

from pathlib import Path
from typing import Any

from pyspark.sql.datasource import Filter

from kvorum.spark.files.find import find_files
from kvorum.spark.files.modes import Mode
from kvorum.spark.files.ranges import plan_ranges
from kvorum.spark.log_source.columns import ARROW_TYPES
from kvorum.spark.log_source.filters import LogFilter
from kvorum.spark.log_source.options import parse_options
from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.spark.log_source.source import PushingReader


class Reader(PushingReader):
    """The reader, with what it made of the filters."""

    @property
    def made(self) -> LogFilter:
        return self._filter


def pushed(filters: list[Filter]) -> LogFilter:
    reader = Reader(parse_options({"path": "p", "pushFilters": "true"}), tuple(ARROW_TYPES))
    assert list(reader.pushFilters(filters)) == filters, "Spark applies each once more"
    return reader.made


def rows(folder: Path, row_filter: LogFilter, mode: Mode, range_bytes: int) -> list[dict[str, Any]]:
    units = plan_ranges(find_files([str(folder)]), range_bytes=range_bytes, has_gaps=True)
    reading = Reading(tuple(ARROW_TYPES), mode, row_filter=row_filter)
    chosen = [unit for unit in units if row_filter.admits_range(unit)]
    return [
        row for unit in chosen for batch in range_rows(unit, reading) for row in batch.to_pylist()
    ]

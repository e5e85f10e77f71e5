"""The filters of Spark: what they mean, and the rows that are left where they are pushed down."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kvorum.spark.files.damage import Mode
from kvorum.spark.files.find import find_files
from kvorum.spark.files.ranges import plan_ranges
from kvorum.spark.log_source.columns import ARROW_TYPES
from kvorum.spark.log_source.filters import LogFilter
from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.spark.log_source.source import PushingReader, parse_options

# The decision of Spark: null never satisfies a comparison.
MEANING: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: lambda value, given: value == given,
    EqualNullSafe: lambda value, given: value == given,
    GreaterThan: lambda value, given: value > given,
    GreaterThanOrEqual: lambda value, given: value >= given,
    LessThan: lambda value, given: value < given,
    LessThanOrEqual: lambda value, given: value <= given,
    In: lambda value, given: value in given,
}


def random_filters(
    random: Random, values: Mapping[str, Callable[[Random], Any]], texts: Collection[str]
) -> list[Filter]:
    """Return one or two filters on columns in `values`; for `texts` only those of equality."""
    return [_random_filter(random, values, texts) for _ in range(random.choice([1, 1, 2]))]


def _random_filter(
    random: Random, values: Mapping[str, Callable[[Random], Any]], texts: Collection[str]
) -> Filter:
    column = random.choice(sorted(values))
    kinds = [kind for kind in MEANING if column not in texts or kind in {EqualTo, In}]
    kind = random.choice(kinds)
    if kind is In:
        count = random.randrange(1, 4)
        return In((column,), tuple(values[column](random) for _ in range(count)))
    made: Any = kind
    found: Filter = made((column,), values[column](random))
    return found


def kept(found: list[dict[str, Any]], filters: list[Filter]) -> list[dict[str, Any]]:
    return [row for row in found if all(satisfies(row, each) for each in filters)]


def satisfies(row: dict[str, Any], given: Any) -> bool:
    value = row[given.attribute[0]]
    return value is not None and MEANING[type(given)](value, given.value)


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

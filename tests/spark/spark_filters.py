"""The rows of logs of records, and Spark's filters: what they mean, and which rows they leave."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, cast

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
from tests.support.spark.small_logs import SmallLog

from kvorum.log_files.find import find_files
from kvorum.log_files.ranges import plan_ranges
from kvorum.spark.damage_modes import Mode
from kvorum.spark.log_source.columns import ARROW_TYPES, columns_named
from kvorum.spark.log_source.filters import LogFilter
from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.spark.log_source.source import PushingReader, parse_options
from kvorum.wire.checksums import crc32c

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
    kind = random.choice([kind for kind in MEANING if column not in texts or kind in {EqualTo, In}])
    if kind is In:
        return In((column,), tuple(values[column](random) for _ in range(random.randrange(1, 4))))
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


EVERY_COLUMN = columns_named(ARROW_TYPES)


OF_THE_RECORD = ("key", "value", "headers", "timestamp", "producer_id", "sequence")


def rows_of(
    paths: Iterable[Path],
    *,
    range_bytes: int = 1 << 26,
    mode: Mode = Mode.FAILFAST,
    columns: tuple[str, ...] = EVERY_COLUMN,
    has_gaps: bool = True,
) -> list[dict[str, Any]]:
    found = find_files(map(str, paths))
    rows: list[dict[str, Any]] = []
    for unit in plan_ranges(found, range_bytes=range_bytes, has_gaps=has_gaps):
        reading = Reading(columns, mode, has_gaps=has_gaps)
        for batch in range_rows(unit, reading):
            assert batch.schema.names == list(columns)
            rows += batch.to_pylist()
    return rows


def after_one_flipped_bit(
    segment: Path, random: Random, folder: Path
) -> tuple[set[int], list[dict[str, Any]]]:
    """Return the offsets of the records that a flipped bit costs, and the rows of damage.

    Every other record must be as it was.
    """
    data = bytearray(segment.read_bytes())
    expected = {row["offset"]: row for row in rows_of([segment])}
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path = folder / segment.name
    path.parent.mkdir()
    path.write_bytes(data)
    rows = rows_of([path], mode=Mode.PERMISSIVE, has_gaps=False)
    whole = [row for row in rows if row["damage"] is None]
    for row in whole:
        assert all(row[name] == expected[row["offset"]][name] for name in OF_THE_RECORD), row
    return expected.keys() - {row["offset"] for row in whole}, [
        row for row in rows if row["damage"]
    ]


def size(value: bytes | None) -> int:
    """Return the size as a dump writes it."""
    return -1 if value is None else len(value)


def milliseconds(time: datetime | None) -> int:
    """Return a timestamp as it is stored."""
    return -1 if time is None else round(time.timestamp() * 1000)


def with_checksum(batch: bytearray) -> bytes:
    """Return a batch that was changed, with the checksum that its bytes have now."""
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def flip(log: SmallLog, random: Random) -> None:
    path = log.inner / random.choice(sorted(log.batches))
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


def present(value: Any) -> Any:
    """Leave out what is null, at any depth: the columns that a result does not have."""
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {name: present(each) for name, each in named.items() if each is not None}
    if isinstance(value, list):
        elements: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - any columns
        return [present(each) for each in elements]
    return value

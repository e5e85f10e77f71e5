"""The rows of a log: read with and without damage, and without their nulls."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, cast

from tests.support.spark.small_logs import SmallLog

from kvorum.spark.files.damage import Mode
from kvorum.spark.files.find import find_files
from kvorum.spark.files.ranges import plan_ranges
from kvorum.spark.log_source.columns import ARROW_TYPES, columns_named
from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.wire.checksums import crc32c

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

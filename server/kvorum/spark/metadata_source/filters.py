"""Conditions of a query that are used to skip files, ranges, batches and records.

A condition only ever skips what Spark would drop: Spark applies every condition once more. So each
method here may return True ("may match") for any reason, and False only with certainty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from kvorum.spark.files.ranges import FileRange
from kvorum.spark.metadata_source.record_types import CONTROL, CONTROL_NAMES, METADATA, NUMBERS
from kvorum.wire.records import Compression, RecordBatch
from kvorum.wire.uuid_text import uuid_from_text

NUMBER_COLUMNS: Final = frozenset({"offset", "epoch", "partition_id", "broker_id", "node_id"})
TEXT_COLUMNS: Final = frozenset(
    {"type", "record_kind", "file_kind", "topic_id", "topic_name", "cluster_id", "path"}
)
TIME_COLUMN: Final = "timestamp"
BODY_COLUMNS: Final = ("topic_id", "topic_name", "partition_id", "broker_id")
# Text that is not UTF-8 is read as this character, so a name with it need not be in the bytes.
REPLACEMENT: Final = "\ufffd"


class Condition(NamedTuple):
    """Values of one column: one of `values` if there are any, and from `low` to `high`.

    Numbers are those of the column; times are milliseconds, the bounds widened to whole ones.
    """

    values: frozenset[Any] | None = None
    low: int | None = None
    high: int | None = None

    def matches(self, value: Any) -> bool:
        """Return whether one value satisfies the condition; null never does."""
        if value is None or (self.values is not None and value not in self.values):
            return False
        return self.may_match(value, value)

    def may_match(self, lowest: int | None, highest: int | None) -> bool:
        """Return whether a value from `lowest` to `highest` may satisfy the bounds and values."""
        if self.low is not None and highest is not None and highest < self.low:
            return False
        if self.high is not None and lowest is not None and lowest > self.high:
            return False
        if self.values is None or lowest is None or highest is None:
            return True
        return any(lowest <= value <= highest for value in self.values)

    def intersected(self, other: Condition) -> Condition:
        """Return the condition that both make together."""
        values = self.values
        if other.values is not None:
            values = other.values if values is None else values & other.values
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Condition(values, max(lows, default=None), min(highs, default=None))


class RowFilter(NamedTuple):
    """All conditions of a query that can be used, by column."""

    conditions: Mapping[str, Condition]

    def admits_range(self, unit: FileRange) -> bool:
        """Return whether a range may hold a row that Spark keeps."""
        file = unit.file
        facts = {
            "path": file.path,
            "cluster_id": file.cluster_id,
            "node_id": file.node_id,
            "file_kind": file.kind.value,
        }
        for column, value in facts.items():
            condition = self.conditions.get(column)
            if condition is not None and not condition.matches(value):
                return False
        offsets = self.conditions.get("offset")
        # Damage behind the last batch is a row with the offset where the range ends.
        return offsets is None or offsets.may_match(unit.lowest_offset, unit.end_offset)

    def admits_batch(self, batch: RecordBatch) -> bool:
        """Return whether a batch may hold a row that Spark keeps, by its header and raw bytes."""
        bounds = {
            "offset": (batch.base_offset, batch.last_offset),
            "epoch": (batch.partition_leader_epoch, batch.partition_leader_epoch),
            # The time of the first record need not be the lowest.
            TIME_COLUMN: (None, batch.max_timestamp),
        }
        for column, (lowest, highest) in bounds.items():
            condition = self.conditions.get(column)
            if condition is not None and not condition.may_match(lowest, highest):
                return False
        return self._admits_kind(is_control=batch.is_control) and self._has_needles(batch)

    def _admits_kind(self, *, is_control: bool) -> bool:
        kinds = self.conditions.get("record_kind")
        if kinds is not None and not kinds.matches(CONTROL if is_control else METADATA):
            return False
        types = self.types
        if types is None:
            return True
        return not types.isdisjoint(CONTROL_NAMES if is_control else NUMBERS)

    def _has_needles(self, batch: RecordBatch) -> bool:
        """Return whether one of the wanted topics' ids and names is among the bytes at all."""
        for column in ("topic_id", "topic_name"):
            needles = self.needles(column)
            if needles is None or batch.compression is not Compression.NONE:
                continue
            data = bytes(batch.data)
            if not any(needle in data for needle in needles):
                return False
        return True

    def needles(self, column: str) -> list[bytes] | None:
        """Return bytes of which one is in every record that has a wanted value; None if unknown."""
        condition = self.conditions.get(column)
        if condition is None or condition.values is None:
            return None
        if column == "topic_name":
            names = [str(name) for name in condition.values]
            if any(REPLACEMENT in name for name in names):
                return None
            return [name.encode("utf-8", errors="surrogatepass") for name in names]
        return [uuid for text in condition.values if (uuid := _uuid(text)) is not None]

    @property
    def types(self) -> frozenset[str] | None:
        """The names of the types that are wanted; None for all of them."""
        condition = self.conditions.get("type")
        return None if condition is None else condition.values


NO_FILTER: Final = RowFilter({})


def _uuid(text: Any) -> bytes | None:
    """Return the id that a text stands for; None for a text that no id is written as."""
    try:
        return uuid_from_text(str(text))
    except ValueError:
        return None


def row_filter(conditions: Iterable[tuple[str, Condition]]) -> RowFilter:
    """Return the filter that all conditions make together."""
    merged: dict[str, Condition] = {}
    for column, condition in conditions:
        merged[column] = merged.get(column, Condition()).intersected(condition)
    return RowFilter(merged)


def one_of(column: str, values: Iterable[Any]) -> Condition | None:
    """Return the condition `column` in `values`; None if it cannot be used."""
    known = frozenset(value for value in values if value is not None)
    if column == TIME_COLUMN:
        times = [_milliseconds(value) for value in known]
        exact = [time for time in times if time is not None]
        if len(exact) < len(times) or not exact:
            return None
        return Condition(low=min(exact), high=max(exact) + 1)
    kind = int if column in NUMBER_COLUMNS else str
    if column not in NUMBER_COLUMNS | TEXT_COLUMNS or not _are_all(known, kind):
        return None
    return Condition(values=known)


def bounded(column: str, *, low: Any = None, high: Any = None) -> Condition | None:
    """Return the condition that `column` lies from `low` to `high`; None if it cannot be used."""
    if column == TIME_COLUMN:
        low = None if low is None else _milliseconds(low)
        high_ms = None if high is None else _milliseconds(high)
        # A bound between two milliseconds is widened.
        high = None if high_ms is None else high_ms + 1
    elif column not in NUMBER_COLUMNS or not _are_all({low, high} - {None}, int):
        return None
    return None if low is None and high is None else Condition(low=low, high=high)


def _are_all(values: Iterable[Any], kind: type) -> bool:
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)


def _milliseconds(value: Any) -> int | None:
    """Return a time in milliseconds, rounded down; None for one without a zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return int(value.timestamp() * 1_000_000) // 1000

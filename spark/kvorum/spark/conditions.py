"""Conditions of a query on single columns, as far as sources of files use them to skip work.

A condition only ever skips what Spark would drop: Spark applies every condition once more. So each
function here may answer "may match" for any reason, and the opposite only with certainty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from kvorum.log_files.ranges import FileRange
from kvorum.spark.columnar.field_places import Flags, Ints


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

    def matching(self, numbers: Ints) -> Flags:
        """Return which of the numbers satisfy the condition."""
        kept = np.ones(len(numbers), np.bool_)
        if self.values is not None:
            kept &= np.isin(numbers, list(self.values))
        if self.low is not None:
            kept &= numbers >= self.low
        if self.high is not None:
            kept &= numbers <= self.high
        return kept

    def may_match_each(self, lowest: Ints | None, highest: Ints) -> Flags:
        """Return what `may_match` says of many bounds; `lowest` is None where it is not known."""
        found = np.ones(len(highest), np.bool_)
        if self.low is not None:
            found &= highest >= self.low
        if lowest is None:
            return found
        if self.high is not None:
            found &= lowest <= self.high
        if self.values is not None:
            values = np.sort(np.array(list(self.values), np.int64))
            found &= np.searchsorted(values, lowest) < np.searchsorted(values, highest, "right")
        return found

    def intersected(self, other: Condition) -> Condition:
        """Return the condition that both make together."""
        values = self.values
        if other.values is not None:
            values = other.values if values is None else values & other.values
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        return Condition(values, max(lows, default=None), min(highs, default=None))


Conditions: TypeAlias = Mapping[str, Condition]
"""The conditions that must all be satisfied, by column."""

ANY: Condition = Condition()
"""The condition that every value satisfies."""


class ColumnKinds(NamedTuple):
    """The columns of a table that conditions may be on, by the kind of their values."""

    numbers: frozenset[str]
    texts: frozenset[str]
    times: frozenset[str]

    def one_of(self, column: str, values: Iterable[Any]) -> Condition | None:
        """Return the condition `column` in `values`; None if it cannot be used."""
        known = frozenset(value for value in values if value is not None)
        if column in self.times:
            times = [_milliseconds(value) for value in known]
            exact = [time for time in times if time is not None]
            if len(exact) < len(times) or not exact:
                return None
            return Condition(low=min(exact), high=max(exact) + 1)
        kind = int if column in self.numbers else str
        if column not in self.numbers | self.texts or not _are_all(known, kind):
            return None
        return Condition(values=known)

    def bounded(self, column: str, *, low: Any = None, high: Any = None) -> Condition | None:
        """Return the condition that `column` lies from `low` to `high`; None if unusable."""
        if column in self.times:
            low = None if low is None else _milliseconds(low)
            high_ms = None if high is None else _milliseconds(high)
            # A bound between two milliseconds is widened.
            high = None if high_ms is None else high_ms + 1
        elif column not in self.numbers or not _are_all({low, high} - {None}, int):
            return None
        return None if low is None and high is None else Condition(low=low, high=high)


def merged(conditions: Iterable[tuple[str, Condition]]) -> Conditions:
    """Return the conditions, those on one column as one."""
    found: dict[str, Condition] = {}
    for column, condition in conditions:
        found[column] = found.get(column, ANY).intersected(condition)
    return found


def all_match(conditions: Conditions, facts: Mapping[str, Any]) -> bool:
    """Return whether the values of some columns satisfy the conditions on them."""
    return all(conditions[name].matches(facts[name]) for name in facts.keys() & conditions.keys())


def all_may_match(
    conditions: Conditions, bounds: Mapping[str, tuple[int | None, int | None]]
) -> bool:
    """Return whether values within bounds, by column, may satisfy the conditions on them."""
    return all(
        conditions[name].may_match(*bounds[name]) for name in bounds.keys() & conditions.keys()
    )


def offsets_may_match(conditions: Conditions, unit: FileRange) -> bool:
    """Return whether a row of a range may have a wanted offset.

    Damage after the last batch is a row with the offset where the range ends.
    """
    return all_may_match(conditions, {"offset": (unit.lowest_offset, unit.end_offset)})


def _are_all(values: Iterable[Any], kind: type) -> bool:
    return all(isinstance(value, kind) and not isinstance(value, bool) for value in values)


def _milliseconds(value: Any) -> int | None:
    """Return a time in milliseconds, rounded down; None for one without a zone."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return int(value.timestamp() * 1_000_000) // 1000

"""What Spark's filters mean, as Spark applies them to rows."""

from collections.abc import Callable, Collection, Mapping
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

# How Spark decides: null never satisfies a comparison.
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

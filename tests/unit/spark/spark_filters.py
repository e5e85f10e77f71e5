"""What Spark's filters mean, as Spark applies them to rows."""

from collections.abc import Callable
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


def kept(found: list[dict[str, Any]], filters: list[Filter]) -> list[dict[str, Any]]:
    return [row for row in found if all(satisfies(row, each) for each in filters)]


def satisfies(row: dict[str, Any], given: Any) -> bool:
    value = row[given.attribute[0]]
    return value is not None and MEANING[type(given)](value, given.value)

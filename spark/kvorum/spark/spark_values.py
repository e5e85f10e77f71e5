"""The values that Spark and the sources of files exchange: ranges, schemas, pushed filters."""

from collections.abc import Iterable

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from kvorum.log_files.ranges import FileRange
from kvorum.spark.conditions import ColumnKinds, Condition, Conditions, merged


class RangePartition(InputPartition):
    """One range to read: the unit of work that Spark distributes."""

    def __init__(self, unit: FileRange) -> None:
        super().__init__(unit.file.path)
        self.unit = unit


def unit_of(partition: InputPartition | None) -> FileRange | None:
    """Return the range that Spark hands to a reader; None where it has none for it."""
    if partition is None:
        return None
    if not isinstance(partition, RangePartition):
        raise TypeError(f"not a partition of this source: {partition!r}")
    return partition.unit


def named_types(schema: StructType) -> list[tuple[str, str]]:
    """Return the columns of a query: pairs of a name and Spark's name of the type."""
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def pushed_conditions(filters: Iterable[Filter], kinds: ColumnKinds) -> Conditions:
    """Return what the filters that can be used ask of the columns in `kinds`."""
    found: list[tuple[str, Condition]] = []
    for each in filters:
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        if len(attribute) != 1:
            # No column, or one inside of a struct.
            continue
        condition = _condition_of(attribute[0], each, kinds)
        if condition is not None:
            found.append((attribute[0], condition))
    return merged(found)


def _condition_of(column: str, given: Filter, kinds: ColumnKinds) -> Condition | None:
    """Return what a filter asks of its column; None for a filter that cannot be used."""
    match given:
        case EqualTo() | EqualNullSafe():
            return None if given.value is None else kinds.one_of(column, [given.value])
        case In():
            return kinds.one_of(column, given.value)
        case GreaterThan() | GreaterThanOrEqual():
            return kinds.bounded(column, low=given.value)
        case LessThan() | LessThanOrEqual():
            return kinds.bounded(column, high=given.value)
        case _:
            return None

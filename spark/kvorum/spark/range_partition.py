"""The values that both sources of files exchange with Spark: ranges to read, and schemas."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from kvorum.spark.files.ranges import FileRange


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

"""The columns of a table as Iceberg has them.

The Parquet files carry no field ids: the property `schema.name-mapping.default` of the table says
which column of a file is which field. Every field is optional, as in a reader's view of Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DoubleType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestamptzType,
)

from kvorum.spark.arrow_types import TIMESTAMP

PARTITION_TYPES: Final[Mapping[str, PrimitiveType]] = MappingProxyType(
    {"cluster_id": StringType(), "day": DateType()}
)
PARTITION_FIELD_ID_MIN: Final = 1000
"""The specification's first id of a partition's field."""
# Iceberg has no integers of fewer than 32 bits.
_TYPES: Final[Mapping[Any, PrimitiveType]] = MappingProxyType(
    {
        pa.bool_(): BooleanType(),
        pa.int8(): IntegerType(),
        pa.int16(): IntegerType(),
        pa.int32(): IntegerType(),
        pa.int64(): LongType(),
        pa.float64(): DoubleType(),
        pa.string(): StringType(),
        pa.binary(): BinaryType(),
        TIMESTAMP: TimestamptzType(),
    }
)


def table_schema(
    columns: Iterable[Any], partitions: Iterable[str], *, base: Schema, last_id: int
) -> Schema:
    """Return the columns of a file, `columns`, and those of its directories as a table's schema.

    A field that is in `base` with the same name and type keeps its id; any other gets one above
    `last_id`, the highest that the table ever had.
    """
    ids = _Ids(base, last_id)
    fields = [_field(ids, field.name, field.name, field.type) for field in columns]
    fields += [
        NestedField(ids.of(name, kind), name, kind, required=False)
        for name, kind in ((name, PARTITION_TYPES[name]) for name in partitions)
    ]
    return Schema(*fields, schema_id=base.schema_id)


def partition_spec(schema: Schema, partitions: Iterable[str]) -> PartitionSpec:
    """Return the partitions by the values of directories."""
    fields = [
        PartitionField(schema.find_field(name).field_id, field_id, IdentityTransform(), name)
        for field_id, name in enumerate(partitions, PARTITION_FIELD_ID_MIN)
    ]
    return PartitionSpec(*fields)


class _Ids:
    """The ids of fields."""

    def __init__(self, base: Schema, last_id: int) -> None:
        self._known = {name: base.find_field(name) for name in base.column_names}
        self._new: Iterator[int] = count(last_id + 1)

    def of(self, path: str, kind: IcebergType) -> int:
        """Return the id of a field; `path` has the names of those around it, too."""
        known = self._known.get(path)
        is_same = known is not None and (
            known.field_type == kind if kind.is_primitive else type(known.field_type) is type(kind)
        )
        return known.field_id if known is not None and is_same else next(self._new)


def _field(ids: _Ids, path: str, name: str, kind: Any) -> NestedField:
    found = _type(ids, path, kind)
    return NestedField(ids.of(path, found), name, found, required=False)


def _type(ids: _Ids, path: str, kind: Any) -> IcebergType:
    if pa.types.is_struct(kind):
        struct: Any = kind
        inner = (struct.field(index) for index in range(struct.num_fields))
        return StructType(
            *(_field(ids, f"{path}.{each.name}", each.name, each.type) for each in inner)
        )
    if pa.types.is_list(kind):
        element = _field(ids, f"{path}.element", "element", kind.value_type)
        return ListType(element.field_id, element.field_type, element_required=False)
    return _TYPES[kind]

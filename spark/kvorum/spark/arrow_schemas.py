"""The tables' Arrow schemas, read from the row types, and rows as record batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import pyarrow as pa

from kvorum.history.columns import ColumnType
from kvorum.spark.arrow_types import TIMESTAMP, timestamp_us

_STORED: Final[Mapping[object, pa.DataType]] = MappingProxyType(
    {
        ColumnType.INT32: pa.int32(),
        ColumnType.INT64: pa.int64(),
        ColumnType.TIMESTAMP_MS: TIMESTAMP,
        str: pa.string(),
        bool: pa.bool_(),
        float: pa.float64(),
    }
)


def arrow_schema(row_type: type[tuple[Any, ...]]) -> pa.Schema:
    """Return the columns of a row type, in the order of its fields."""
    return pa.schema(_fields(row_type))


def record_batch(
    row_type: type[tuple[Any, ...]], rows: Sequence[tuple[Any, ...]]
) -> pa.RecordBatch:
    """Return rows of one type as an Arrow batch.

    A time before 1970, which is how Kafka marks a batch without a time, becomes null.
    """
    schema = arrow_schema(row_type)
    columns: dict[str, list[Any]] = {}
    for index, name in enumerate(schema.names):
        values = [row[index] for row in rows]
        if schema.types[index] == TIMESTAMP:
            values = [None if value is None else timestamp_us(value) for value in values]
        columns[name] = values
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def _fields(row_type: type) -> list[pa.Field[Any]]:
    hints = get_type_hints(row_type, include_extras=True)
    return [_field(name, hint) for name, hint in hints.items()]


def _field(name: str, hint: Any) -> pa.Field[Any]:
    choices = get_args(hint)
    if NoneType in choices:
        return pa.field(name, _stored_type(choices[0]), nullable=True)
    # A time that is out of range is null in the stored table.
    stored = _stored_type(hint)
    return pa.field(name, stored, nullable=stored == TIMESTAMP)


def _stored_type(hint: Any) -> pa.DataType:
    """Return the stored type of a field's annotation, which must not be optional."""
    if get_origin(hint) is Annotated:
        return _STORED[get_args(hint)[1]]
    if get_origin(hint) is tuple:
        return pa.list_(_stored_type(get_args(hint)[0]))
    return _STORED[hint] if hint in _STORED else pa.struct(_fields(hint))

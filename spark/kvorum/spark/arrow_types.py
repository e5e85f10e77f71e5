"""Arrow types of columns, what Spark calls them, and times of Kafka's records as Spark's."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from kvorum.spark.errors import OptionError

NO_TIMESTAMP: Final = -1
TIMESTAMP_MS_MIN: Final = -62_135_596_800_000
TIMESTAMP_MS_MAX: Final = 253_402_300_799_999
"""The milliseconds of the years 1 to 9999, in UTC: the range of Spark's timestamps.

Neither Python nor Spark's own functions can show another time.
"""

BOOLEAN: Final = pa.bool_()
INT: Final = pa.int32()
LONG: Final = pa.int64()
TEXT: Final = pa.string()
INTS: Final = pa.list_(INT)
TEXTS: Final = pa.list_(TEXT)
TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
"""The unit is Spark's: it takes no other one from Arrow."""

_SPARK_TYPES: Final[Mapping[Any, str]] = MappingProxyType(
    {
        pa.bool_(): "boolean",
        pa.int8(): "tinyint",
        pa.int16(): "smallint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float64(): "double",
        pa.string(): "string",
        pa.binary(): "binary",
        TIMESTAMP: "timestamp",
    }
)


def is_shown(timestamp_ms: int) -> bool:
    """Return whether a column can have the time; "no timestamp" is none."""
    is_in_range = TIMESTAMP_MS_MIN <= timestamp_ms <= TIMESTAMP_MS_MAX
    return is_in_range and timestamp_ms != NO_TIMESTAMP


def timestamp_us(timestamp_ms: int) -> int | None:
    """Return a time in Spark's microseconds; None for "no timestamp" and a time out of range."""
    return timestamp_ms * 1000 if is_shown(timestamp_ms) else None


def arrow_schema(types: Mapping[str, Any]) -> pa.Schema:
    """Return the schema of Arrow batches with columns of these names and types."""
    fields: list[Any] = [pa.field(name, kind) for name, kind in types.items()]
    return pa.schema(fields)


def spark_schema(types: Mapping[str, Any]) -> str:
    """Return the schema of columns of these names and types as Spark's DDL."""
    return ", ".join(f"`{name}` {spark_type(kind)}" for name, kind in types.items())


def demand_types(given: Iterable[tuple[str, str]], types: Mapping[str, Any]) -> None:
    """Raise `OptionError` for a column that is given with another type than Spark's name of its."""
    for name, found in given:
        if found != spark_type(types[name]):
            raise OptionError(f"column {name!r} is {spark_type(types[name])}, not {found}")


def spark_type(kind: Any) -> str:
    """Return Spark's name of an Arrow type, without spaces, as `DataType.simpleString` gives it."""
    if pa.types.is_struct(kind):
        struct: Any = kind
        fields: list[Any] = [struct.field(index) for index in range(struct.num_fields)]
        inner = ",".join(f"{field.name}:{spark_type(field.type)}" for field in fields)
        return f"struct<{inner}>"
    return f"array<{spark_type(kind.value_type)}>" if pa.types.is_list(kind) else _SPARK_TYPES[kind]

"""Results as Arrow structs, and their type in Spark and in Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql.pandas.functions import (
    arrow_udf,  # pyright: ignore[reportUnknownVariableType] - its stub leaves out type parameters
)
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kvorum.spark.arrow_types import TIMESTAMP
from kvorum.spark.functions.record_function import (
    Column,
    FunctionArgumentError,
    Kind,
    Mode,
    RecordFunction,
    Row,
    UndecodableRecordError,
    mode_of,
)

if TYPE_CHECKING:
    ArrowArray: TypeAlias = pa.Array[Any]
else:
    # Spark looks at this annotation, and Arrow's class takes no parameter while the code runs.
    ArrowArray = pa.Array

_TYPES: Final[Mapping[Kind, tuple[DataType, pa.DataType]]] = MappingProxyType(
    {
        Kind.TEXT: (StringType(), pa.string()),
        Kind.INTEGER: (IntegerType(), pa.int32()),
        Kind.LONG: (LongType(), pa.int64()),
        Kind.BOOLEAN: (BooleanType(), pa.bool_()),
        Kind.TIMESTAMP: (TimestampType(), TIMESTAMP),
        Kind.TEXTS: (ArrayType(StringType()), pa.list_(pa.string())),
        Kind.INTEGERS: (ArrayType(IntegerType()), pa.list_(pa.int32())),
    }
)


# pyspark's stub demands a kind of function as well, which pyspark infers itself from annotations.
_ARROW_UDF = cast(
    "Callable[[Callable[..., ArrowArray], DataType], Callable[..., SparkColumn]]", arrow_udf
)


def spark_struct(columns: Sequence[Column]) -> StructType:
    """Return the type of a result for Spark."""
    return StructType([StructField(column.name, _spark_type(column)) for column in columns])


def arrow_struct(columns: Sequence[Column]) -> pa.StructType:
    """Return the type of a result for Arrow."""
    return pa.struct([pa.field(column.name, _arrow_type(column)) for column in columns])


def _spark_type(column: Column) -> DataType:
    if column.kind is Kind.STRUCTS:
        return ArrayType(spark_struct(column.elements))
    return _TYPES[column.kind][0]


def _arrow_type(column: Column) -> pa.DataType:
    if column.kind is Kind.STRUCTS:
        return pa.list_(arrow_struct(column.elements))
    return _TYPES[column.kind][1]


def arrow_function(function: RecordFunction) -> Callable[..., SparkColumn]:
    """Return the function as Spark calls it, over batches of rows in Arrow's form."""

    def call(*arrays: ArrowArray) -> ArrowArray:
        return evaluate(function, arrays)

    # Spark shows this name in plans, and as the name of the column.
    call.__name__ = function.name
    return _ARROW_UDF(call, spark_struct(function.columns))


def evaluate(function: RecordFunction, arrays: Sequence[ArrowArray]) -> ArrowArray:
    """Return the results for a batch of rows: one array for each argument, and one of modes or not.

    Raises `FunctionArgumentError` for arrays that the function cannot take, and
    `UndecodableRecordError` for the first record that cannot be decoded in the mode FAILFAST.
    """
    count = len(function.arguments)
    if len(arrays) not in {count, count + 1}:
        wanted = ", ".join(function.arguments)
        raise FunctionArgumentError(
            f"{function.name}({wanted}[, mode]) got {len(arrays)} arguments"
        )
    for name, array in zip(function.arguments, arrays, strict=False):
        _check_binary(function, name, array.type)
    rows: Iterable[Row | None] = map(function.row, *(array.to_pylist() for array in arrays[:count]))
    if len(arrays) > count:
        rows = _checked(function, rows, arrays[count])
    return pa.array(rows, type=arrow_struct(function.columns), size=len(arrays[0]))


def _check_binary(function: RecordFunction, name: str, found: pa.DataType) -> None:
    is_binary = pa.types.is_binary(found) or pa.types.is_large_binary(found)
    if not is_binary and not pa.types.is_null(found):
        raise FunctionArgumentError(f"{function.name}: {name} must be BINARY, not {found}")


def _checked(
    function: RecordFunction, rows: Iterable[Row | None], modes: ArrowArray
) -> Iterable[Row | None]:
    """Yield the rows, unless a row with the mode FAILFAST has an error."""
    for row, mode in zip(rows, map(mode_of, modes.to_pylist()), strict=True):
        if mode is Mode.FAILFAST and row is not None and "error" in row:
            raise UndecodableRecordError(f"{function.name}: {row['error']}")
        yield row

"""Functions as Spark calls them, with results as Arrow structs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql.pandas.functions import arrow_udf  # pyright: ignore[reportUnknownVariableType] - its stub leaves out type parameters

from kvorum.spark.arrow_types import spark_type
from kvorum.spark.functions.record_function import (
    FunctionArgumentError,
    Mode,
    RecordFunction,
    Row,
    UndecodableRecordError,
    mode_of,
    struct_of,
)

if TYPE_CHECKING:
    ArrowArray: TypeAlias = pa.Array[Any]
else:
    # Spark looks at this annotation, and Arrow's class takes no parameter while the code runs.
    ArrowArray = pa.Array

# pyspark's stub demands a kind of function as well, which pyspark infers itself from annotations.
_ARROW_UDF = cast(
    "Callable[[Callable[..., ArrowArray], str], Callable[..., SparkColumn]]", arrow_udf
)


def arrow_function(function: RecordFunction) -> Callable[..., SparkColumn]:
    """Return the function as Spark calls it, over batches of rows in Arrow's form."""

    def call(*arrays: ArrowArray) -> ArrowArray:
        return evaluate(function, arrays)

    # Spark shows this name in plans, and as the name of the column.
    call.__name__ = function.name
    return _ARROW_UDF(call, spark_type(struct_of(function.columns)))


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
        kind = array.type
        is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        if not is_binary and not pa.types.is_null(kind):
            raise FunctionArgumentError(f"{function.name}: {name} must be BINARY, not {kind}")
    rows: Iterable[Row | None] = map(function.row, *(array.to_pylist() for array in arrays[:count]))
    if len(arrays) > count:
        rows = _checked(function, rows, arrays[count])
    return pa.array(rows, type=struct_of(function.columns), size=len(arrays[0]))


def _checked(
    function: RecordFunction, rows: Iterable[Row | None], modes: ArrowArray
) -> Iterable[Row | None]:
    """Yield the rows, unless a row with the mode FAILFAST has an error."""
    for row, mode in zip(rows, map(mode_of, modes.to_pylist()), strict=True):
        if mode is Mode.FAILFAST and row is not None and "error" in row:
            raise UndecodableRecordError(f"{function.name}: {row['error']}")
        yield row

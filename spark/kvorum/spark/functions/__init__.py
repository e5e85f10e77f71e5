"""Functions of Spark over the bytes of Kafka's internal records, for bytes that are in a table.

    from kvorum.spark.functions import consumer_offsets_record, register

    commits = records.select(consumer_offsets_record("key", "value").alias("record"))
    register(spark)
    spark.sql("SELECT kvorum_consumer_offsets_record(key, value) AS record FROM records")

Every function takes binary columns and returns a struct, whose columns docs/spark/functions.md
lists. A record that cannot be decoded has a struct with the reason in its column `error`; with
`mode="FAILFAST"`, in SQL as the last argument, it fails the query. Spark's workers import kvorum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import Column as SparkColumn
from pyspark.sql.functions import lit
from pyspark.sql.pandas.functions import arrow_udf  # pyright: ignore[reportUnknownVariableType] - its stub leaves out type parameters

from kvorum.spark.arrow_types import spark_type
from kvorum.spark.functions.cluster_metadata import METADATA_RECORD
from kvorum.spark.functions.consumer_offsets import CONSUMER_OFFSETS_RECORD
from kvorum.spark.functions.record_function import (
    FunctionArgumentError,
    Mode,
    RecordFunction,
    Row,
    UndecodableRecordError,
    mode_of,
    struct_of,
)
from kvorum.spark.functions.remote_log_metadata import REMOTE_LOG_METADATA_RECORD
from kvorum.spark.functions.share_group_state import SHARE_GROUP_STATE_RECORD
from kvorum.spark.functions.transaction_state import TRANSACTION_STATE_RECORD

if TYPE_CHECKING:
    ArrowArray: TypeAlias = pa.Array[Any]
else:
    # Spark looks at this annotation, and Arrow's class takes no parameter while the code runs.
    ArrowArray = pa.Array

# pyspark's stub demands a kind of function as well, which pyspark infers itself from annotations.
_ARROW_UDF = cast(
    "Callable[[Callable[..., ArrowArray], str], Callable[..., SparkColumn]]", arrow_udf
)

__all__ = [
    "FUNCTIONS",
    "consumer_offsets_record",
    "metadata_record",
    "register",
    "remote_log_metadata_record",
    "share_group_state_record",
    "transaction_state_record",
]

FUNCTIONS: Final = (
    METADATA_RECORD,
    CONSUMER_OFFSETS_RECORD,
    TRANSACTION_STATE_RECORD,
    SHARE_GROUP_STATE_RECORD,
    REMOTE_LOG_METADATA_RECORD,
)
"""Every function that `register` makes known."""


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


def register(spark: SparkSession) -> None:
    """Make all functions known to a session's SQL, by the names in `FUNCTIONS`."""
    for function in FUNCTIONS:
        spark.udf.register(function.name, arrow_function(function))


def metadata_record(value: Column | str, *, mode: str = Mode.PERMISSIVE.value) -> Column:
    """Return the records of the cluster metadata log that a column has as framed values."""
    return _call(METADATA_RECORD, value, mode=mode)


def consumer_offsets_record(
    key: Column | str, value: Column | str, *, mode: str = Mode.PERMISSIVE.value
) -> Column:
    """Return the records of ``__consumer_offsets``: committed offsets, and groups of all kinds."""
    return _call(CONSUMER_OFFSETS_RECORD, key, value, mode=mode)


def transaction_state_record(
    key: Column | str, value: Column | str, *, mode: str = Mode.PERMISSIVE.value
) -> Column:
    """Return the records of ``__transaction_state``: the state of each transactional id."""
    return _call(TRANSACTION_STATE_RECORD, key, value, mode=mode)


def share_group_state_record(
    key: Column | str, value: Column | str, *, mode: str = Mode.PERMISSIVE.value
) -> Column:
    """Return the records of ``__share_group_state``: how far share groups are in partitions."""
    return _call(SHARE_GROUP_STATE_RECORD, key, value, mode=mode)


def remote_log_metadata_record(value: Column | str, *, mode: str = Mode.PERMISSIVE.value) -> Column:
    """Return the records of ``__remote_log_metadata``: segments in remote storage."""
    return _call(REMOTE_LOG_METADATA_RECORD, value, mode=mode)


def _call(function: RecordFunction, *columns: Column | str, mode: str) -> Column:
    """Apply a function to columns; raises `FunctionArgumentError` for an unknown mode."""
    # Without the mode, no worker receives it for each of the rows.
    modes = () if mode_of(mode) is Mode.PERMISSIVE else (lit(mode),)
    return arrow_function(function)(*columns, *modes)

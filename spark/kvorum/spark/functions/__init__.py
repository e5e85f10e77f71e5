"""Functions of Spark over the bytes of Kafka's internal records, for bytes that are in a table.

    from kvorum.spark.functions import consumer_offsets_record, register

    commits = records.select(consumer_offsets_record("key", "value").alias("record"))
    register(spark)
    spark.sql("SELECT kvorum_consumer_offsets_record(key, value) AS record FROM records")

Every function takes binary columns and returns a struct, whose columns docs/spark/functions.md
lists. A record that cannot be decoded has a struct with the reason in its column `error`; with
`mode="FAILFAST"`, in SQL as the last argument, it fails the query. Spark's workers import kvorum.
"""

from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import lit

from kvorum.spark.functions.arrow_structs import arrow_function
from kvorum.spark.functions.cluster_metadata import METADATA_RECORD
from kvorum.spark.functions.consumer_offsets import CONSUMER_OFFSETS_RECORD
from kvorum.spark.functions.record_function import Mode, RecordFunction, mode_of
from kvorum.spark.functions.remote_log_metadata import REMOTE_LOG_METADATA_RECORD
from kvorum.spark.functions.share_group_state import SHARE_GROUP_STATE_RECORD
from kvorum.spark.functions.transaction_state import TRANSACTION_STATE_RECORD

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

"""The functions as Spark calls them: in SQL, on columns, in both modes."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from tests.spark.log_rows import present
from tests.support.golden_data import TOPICS, golden_records

from kvorum.spark import functions
from kvorum.spark.arrow_types import TIMESTAMP
from kvorum.spark.functions.consumer_offsets import CONSUMER_OFFSETS_RECORD
from kvorum.spark.functions.record_function import Column, FunctionArgumentError, RecordFunction
from kvorum.spark.functions.share_group_state import SHARE_GROUP_STATE_RECORD
from kvorum.spark.functions.transaction_state import TRANSACTION_STATE_RECORD

# pyspark leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

BATCH_ROWS_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
BY_TOPIC: dict[str, tuple[RecordFunction, Callable[..., SparkColumn]]] = {
    "__consumer_offsets": (CONSUMER_OFFSETS_RECORD, functions.consumer_offsets_record),
    "__share_group_state": (SHARE_GROUP_STATE_RECORD, functions.share_group_state_record),
    "__transaction_state": (TRANSACTION_STATE_RECORD, functions.transaction_state_record),
}


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with the functions, and batches that are smaller than the tables."""
    functions.register(spark)
    spark.conf.set(BATCH_ROWS_SETTING, "50")
    yield spark
    spark.conf.unset(BATCH_ROWS_SETTING)


def table(
    session: SparkSession, schema: str, rows: Sequence[tuple[bytes | None, ...]]
) -> DataFrame:
    return session.createDataFrame(list(rows), schema).coalesce(1)


def shown(columns: Sequence[Column]) -> list[str]:
    """Return the expressions of what is in the column `record`, times in microseconds."""
    return [
        f"unix_micros(record.{column.name}) AS {column.name}"
        if column.type == TIMESTAMP
        else f"record.{column.name}"
        for column in columns
    ]


@pytest.mark.parametrize("topic", TOPICS)
def test_sql_and_columns_give_the_rows_of_golden_records(
    session: SparkSession, golden_sets: Path, topic: str
) -> None:
    function, call = BY_TOPIC[topic]
    records = [(record.key, record.value) for record in golden_records(golden_sets, topic)]
    stored = table(session, "key binary, value binary", records)
    in_sql = stored.selectExpr(f"{function.name}(key, value) AS record", "key", "value")
    on_columns = in_sql.select("record", call("key", in_sql.value).alias("again"))
    is_same = "record <=> again AS is_same"
    found = on_columns.selectExpr(*shown(function.columns), is_same).collect()
    assert [present(row.asDict(recursive=True)) for row in found] == [
        {**present(function.row(key, value)), "is_same": True} for key, value in records
    ]


def test_functions_of_a_value_give_null_and_errors_as_rows(session: SparkSession) -> None:
    stored = table(session, "value binary", [(b"\x02",), (None,)])
    found = stored.select(
        functions.metadata_record("value").alias("metadata"),
        functions.remote_log_metadata_record("value").alias("remote"),
        expr("kvorum_metadata_record(value, 'permissive')").alias("metadata_in_sql"),
        expr("kvorum_remote_log_metadata_record(value, 'PERMISSIVE')").alias("remote_in_sql"),
    ).collect()
    problem = "unknown frame version 2 (only frame version 1 is known)"
    assert [found[0][name]["error"] for name in found[0].asDict()] == [problem] * 4
    assert list(found[1]) == [None] * 4


def test_failfast_fails_the_query_with_the_reason(session: SparkSession) -> None:
    stored = table(session, "value binary", [(b"\x02",)])
    for failing in (
        functions.metadata_record("value", mode="failfast"),
        expr("kvorum_metadata_record(value, 'FAILFAST')"),
    ):
        with pytest.raises(
            PySparkException, match="kvorum_metadata_record: unknown frame version 2"
        ):
            stored.select(failing).collect()


def test_text_instead_of_bytes_is_refused_by_name(session: SparkSession) -> None:
    stored = table(session, "value binary", [(b"text",)])
    with pytest.raises(PySparkException, match="value must be BINARY, not string"):
        stored.selectExpr("kvorum_metadata_record(CAST(value AS STRING))").collect()


def test_an_unknown_mode_is_refused_before_the_query_runs() -> None:
    with pytest.raises(FunctionArgumentError, match="unknown mode 'dropmalformed'"):
        functions.metadata_record("value", mode="dropmalformed")

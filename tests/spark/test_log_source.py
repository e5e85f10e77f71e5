"""The source kvorum-log through Spark itself."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from kvorum.spark import KvorumLogSource
from kvorum.wire.records import read_batches

# pyspark leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

TRANSACTIONS = "dynamic-4.3.1/data/emails-tx-0"


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    spark.dataSource.register(KvorumLogSource)
    return spark.read.format("kvorum-log").option("path", str(path)).options(**options).load()


@pytest.mark.slow
def test_a_partition_is_a_table_of_its_records(spark: SparkSession, golden_sets: Path) -> None:
    path = golden_sets / TRANSACTIONS
    (segment,) = path.glob("*.log")
    stored = [
        (record.offset, record.key, record.value, len(record.headers))
        for batch in read_batches(segment.read_bytes())
        for record in batch.records()
    ]
    table = load(spark, path, maxPartitionBytes="300")
    assert table.rdd.getNumPartitions() > 1
    found = table.selectExpr("offset", "key", "value", "size(headers) AS count").collect()
    assert [(row[0], as_bytes(row[1]), as_bytes(row[2]), row[3]) for row in found] == stored
    kinds = {row[0] for row in table.select("transaction").distinct().collect()}
    assert {"committed", "aborted"} <= kinds
    assert {row[0] for row in table.select("topic").distinct().collect()} == {"emails-tx"}


def as_bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def test_topics_are_chosen_among_those_of_a_node(spark: SparkSession, golden_sets: Path) -> None:
    node = golden_sets / "dynamic-4.3.1/data"
    table = load(spark, node, topics="emails-tx, sessions-none", columns="topic,partition")
    found = {(row["topic"], row["partition"]) for row in table.distinct().collect()}
    assert found == {("emails-tx", 0), ("emails-tx", 1), ("sessions-none", 0)}


def test_sql_reads_files_by_a_view_and_hears_so(spark: SparkSession, golden_sets: Path) -> None:
    spark.dataSource.register(KvorumLogSource)
    path = golden_sets / TRANSACTIONS
    # Its own annotation of the arguments is not whole.
    sql = cast("Callable[[str], DataFrame]", spark.sql)  # pyright: ignore[reportUnknownMemberType] - as said
    listed = f"listed USING `kvorum-log` OPTIONS (path '{path}', columns 'offset')"
    with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
        sql(f"CREATE TABLE {listed}")
    sql(f"CREATE TEMPORARY VIEW {listed}")
    try:
        found = sql("SELECT * FROM listed").collect()
    finally:
        spark.catalog.dropTempView("listed")
    assert sorted(found) == sorted(load(spark, path).select("offset").collect())


@pytest.mark.slow
def test_a_pushed_filter_finds_what_spark_finds(spark: SparkSession, golden_sets: Path) -> None:
    condition = "transaction = 'committed' AND offset >= 3 AND topic = 'emails-tx'"
    node = golden_sets / "dynamic-4.3.1/data"
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        found = load(spark, node, pushFilters="true").where(condition)
        assert found.rdd.getNumPartitions() == 2, "the other topics' files are left out"
        rows = found.select("path", "offset", "value").collect()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    expected = load(spark, node).where(condition).select("path", "offset", "value").collect()
    assert len(rows) > 2
    assert sorted(rows) == sorted(expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": "offset,nothing"}, "no column 'nothing'"),
        ({"complete": "perhaps"}, "option 'complete' is 'perhaps'"),
        ({"pushFilters": "perhaps"}, "option 'pushFilters' is 'perhaps'"),
        ({"topics": "none"}, "holds no segments or snapshots of none"),
    ],
)
def test_a_wrong_option_is_named(
    spark: SparkSession, golden_sets: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        load(spark, golden_sets / "dynamic-4.3.1/data", **options).collect()

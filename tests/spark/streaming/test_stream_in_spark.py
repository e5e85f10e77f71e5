"""Streams through Spark itself: a growing directory, stopped and restarted, and what goes wrong."""

from pathlib import Path
from random import Random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.streaming.growing_logs import append, end_of
from tests.support.spark.small_logs import write_log
from tests.support.spark.streaming_reads import start_patiently

from kvorum.spark import KvorumMetadataSource

# pyspark leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def run(spark: SparkSession, folder: Path, **options: str) -> None:
    """Run a query over everything there is, from where the one before ended, and end it."""
    spark.dataSource.register(KvorumMetadataSource)
    table = spark.readStream.format("kvorum-metadata").options(**options).load()
    sink = (
        table.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
    )
    start_patiently(sink.start, has_ended_well).awaitTermination()


def has_ended_well(query: StreamingQuery) -> bool:
    try:
        query.awaitTermination()
    except PySparkException:
        return False
    return True


@pytest.mark.slow
def test_a_growing_directory_is_read_once_through_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    first = write_log(logs / "a", Random(1))
    run(spark, tmp_path, path=str(logs), columns="path,offset,type")
    append(first, Random(2))
    append(first, Random(3), is_rolled=True)
    second = write_log(logs / "b", Random(4), node=2)
    run(spark, tmp_path, path=str(logs), columns="path,offset,type")
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    for log in (first, second):
        found = sorted(row["offset"] for row in rows if row["path"].startswith(str(log.folder)))
        assert found == list(range(end_of(log)))
    assert len(rows) == end_of(first) + end_of(second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"controllers": "somewhere"}, "an address is host:port"),
        ({"controllers": "127.0.0.1:1", "retryTimeoutMs": "0"}, "no leader of the quorum"),
    ],
)
def test_what_is_wrong_is_named(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        run(spark, tmp_path, **options)

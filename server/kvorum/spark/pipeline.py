"""The job behind ``kvorum pipeline``: a metadata log in, Parquet tables out.

| table | one row is |
|---|---|
| records/ | a record of any file of the log, as the data source ``kvorum-metadata`` gives it |
| topics/ | a topic that exists at the end of the log |
| partitions/ | a partition of such a topic: replicas, ISR, leader, epochs, directories |
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from kvorum.spark.current_files import current_files
from kvorum.spark.files.find import METADATA_SEARCH, find_files
from kvorum.spark.latest_state import topics_and_partitions
from kvorum.spark.metadata_source.source import KvorumMetadataSource

RECORDS: Final = "records"
TOPICS: Final = "topics"
PARTITIONS: Final = "partitions"


@dataclass(frozen=True, slots=True)
class PipelineReport:
    """The number of rows in each table, and the number of files read."""

    file_count: int
    record_count: int
    topic_count: int
    partition_count: int


def run_pipeline(
    spark: SparkSession, *, input_path: str, output_path: str, overwrite: bool = False
) -> PipelineReport:
    """Write the tables of a metadata log under `output_path` and count their rows.

    The log is decoded once; the state is folded from the resulting table. Raises
    `LogFilesError` for a path without a usable log, before anything is written. For a damaged
    file, Spark's own error names file and offset.
    """
    files = find_files([input_path], METADATA_SEARCH).files
    current_files(files)
    output = Path(output_path)
    mode = "overwrite" if overwrite else "errorifexists"

    def write(name: str, table: DataFrame) -> DataFrame:
        target = str(output / name)
        table.write.mode(mode).parquet(target)
        return spark.read.parquet(target)

    spark.dataSource.register(KvorumMetadataSource)
    source = spark.read.format(KvorumMetadataSource.name()).options(path=input_path, json="true")
    records = write(RECORDS, source.load())
    topics, partitions = topics_and_partitions(spark, records=records, files=files)
    written_topics = write(TOPICS, topics.orderBy("topic_name"))
    written_partitions = write(PARTITIONS, partitions.orderBy("topic_name", "partition_id"))
    return PipelineReport(
        file_count=len(files),
        record_count=records.count(),
        topic_count=written_topics.count(),
        partition_count=written_partitions.count(),
    )

"""The Spark data source ``kvorum-metadata``: the records of a Kafka metadata log as a table.

    from kvorum.spark import KvorumMetadataSource

    spark.dataSource.register(KvorumMetadataSource)
    records = spark.read.format("kvorum-metadata").option("path", "/var/kafka/metadata").load()

`path` is a metadata log directory (any Kafka's, or kvorum's), its ``__cluster_metadata-0``, or one
segment or snapshot. There is one row per record, control records included; one Spark partition
per file; rows come as Arrow batches of bounded size, so that a reader's memory does not depend on
the size of the file. Files that overlap, such as a snapshot and the segments it stands in for, are
all read: `file_kind`, `file` and `offset` distinguish them.

- `file`, `file_kind`: the path; `segment`, `snapshot` or `bootstrap`
- `offset`, `epoch`, `timestamp`: as stored; a snapshot counts offsets from 0 of its own
- `record_kind`, `type`, `version`: `metadata` or `control`; the type's name in Kafka's dumps
- `topic_name`, `topic_id`, `partition_id`, `node_id`, `resource_type`, `resource_name`, `name`:
  the subject of the record, where it has one
- `json`: the whole record in Kafka's JSON form

A damaged file fails the query with an error that names file and offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kvorum.spark.arrow_rows import SPARK_SCHEMA, arrow_batches
from kvorum.spark.errors import MetadataFilesError
from kvorum.spark.metadata_files import MetadataFile, find_files
from kvorum.spark.record_rows import read_rows


class FilePartition(InputPartition):
    """One file to read: the unit of work that Spark distributes."""

    def __init__(self, file: MetadataFile) -> None:
        super().__init__(file.path)
        self.file = file


class KvorumMetadataReader(DataSourceReader):
    """A reader of the files at a path, each of them on its own."""

    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per file."""
        return [FilePartition(file) for file in find_files(self._path)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a file's records as Arrow batches."""
        if not isinstance(partition, FilePartition):
            raise TypeError(f"not a partition of this source: {partition!r}")
        yield from arrow_batches(partition.file, read_rows(partition.file))


class KvorumMetadataSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "kvorum-metadata"

    def schema(self) -> str:
        """Return the columns, the same for every path."""
        return SPARK_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        """Return the reader for the given path."""
        path = self.options.get("path")
        if not path:
            raise MetadataFilesError(
                "option 'path' is missing: name a metadata log directory, a segment or a snapshot"
            )
        return KvorumMetadataReader(path)

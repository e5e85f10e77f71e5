"""The data source ``kvorum-metadata`` as Spark calls it: schema, reader, units of work.

    from kvorum.spark import KvorumMetadataSource

    spark.dataSource.register(KvorumMetadataSource)
    records = spark.read.format("kvorum-metadata").option("path", "s3://logs/").load()

There is one row per record, control records included. docs/spark/README.md lists options and
columns.

Spark asks for the schema, for the ranges and for the rows in a process each. What only one of them
needs is imported there: the imports of everything take longer than small queries do.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from kvorum.spark.arrow_types import spark_schema
from kvorum.spark.files.find import find_files
from kvorum.spark.files.ranges import plan_ranges
from kvorum.spark.metadata_source.columns import Column, types_of
from kvorum.spark.metadata_source.filters import COLUMN_KINDS, NO_FILTER, RowFilter
from kvorum.spark.metadata_source.options import (
    SourceOptions,
    chosen_columns,
    parse_options,
    wanted_columns,
)
from kvorum.spark.spark_values import RangePartition, named_types, pushed_conditions, unit_of
from kvorum.spark.worker_process import prepare_for_more_tasks


class KvorumMetadataReader(DataSourceReader):
    """A reader of the ranges of all files that the options name."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...]) -> None:
        self._options = options
        self._columns = columns
        self._filter: RowFilter = NO_FILTER

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per range that may hold rows."""
        options = self._options.files
        ranges = plan_ranges(
            find_files(options.paths, options.search),
            range_bytes=options.range_bytes,
            file_system_options=options.search.file_system_options,
        )
        return [RangePartition(unit) for unit in ranges if self._filter.admits_range(unit)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range as Arrow batches; none where Spark has no range."""
        from kvorum.spark.metadata_source.range_rows import Query, arrow_batches  # noqa: PLC0415 - tasks alone need it

        prepare_for_more_tasks()
        unit = unit_of(partition)
        if unit is None:
            return
        files = self._options.files
        options = files.search.file_system_options
        query = Query(self._columns, self._filter, files.mode, options)
        yield from arrow_batches(unit, query)


class PushingReader(KvorumMetadataReader):
    """The reader that takes a query's filters, to skip what they leave out."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Remember the filters that can be used; return all, because Spark applies each again."""
        self._filter = RowFilter(pushed_conditions(filters, COLUMN_KINDS))
        return filters


class KvorumMetadataSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "kvorum-metadata"

    def schema(self) -> str:
        """Return the columns that the options ask for."""
        prepare_for_more_tasks()
        return spark_schema(types_of(wanted_columns(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the columns of `schema`, for the given options."""
        prepare_for_more_tasks()
        options = parse_options(self.options)
        kind = PushingReader if options.is_pushing_filters else KvorumMetadataReader
        return kind(options, chosen_columns(self.options, named_types(schema)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream, over a quorum or over directories."""
        from kvorum.spark.streaming.options import (  # noqa: PLC0415 - streams alone need it
            directory_options,
            is_quorum,
            quorum_options,
            stream_options,
        )

        columns = chosen_columns(self.options, named_types(schema))
        stream = stream_options(self.options)
        if is_quorum(self.options):
            from kvorum.spark.metadata_source.quorum_stream import QuorumStreamReader  # noqa: PLC0415 - as above

            return QuorumStreamReader(stream, quorum_options(self.options), columns)
        from kvorum.spark.metadata_source.directory_stream import DirectoryStreamReader  # noqa: PLC0415 - as above

        return DirectoryStreamReader(stream, directory_options(self.options), columns)

"""The data source ``kvorum-log`` as Spark calls it: schema, reader, units of work.

    from kvorum.spark import KvorumLogSource

    spark.dataSource.register(KvorumLogSource)
    records = spark.read.format("kvorum-log").option("path", "/var/kafka/orders-0").load()

There is one row per record, control records included. docs/spark/README.md lists options and
columns.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kvorum.spark.arrow_types import spark_schema
from kvorum.spark.files.find import FileKind, find_files
from kvorum.spark.files.ranges import FileRange, plan_ranges
from kvorum.spark.log_source.columns import types_of
from kvorum.spark.log_source.filters import COLUMN_KINDS, NO_FILTER, LogFilter
from kvorum.spark.log_source.options import SourceOptions, chosen_columns, parse_options
from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.spark.spark_values import RangePartition, named_types, pushed_conditions, unit_of
from kvorum.spark.worker_process import prepare_for_more_tasks


class KvorumLogReader(DataSourceReader):
    """A reader of the ranges of all segments that the options name."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._filter: LogFilter = NO_FILTER

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per range that may hold rows."""
        return [
            RangePartition(unit)
            for unit in planned_segments(self._options)
            if self._filter.admits_range(unit)
        ]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range as Arrow batches; none where Spark has no range."""
        prepare_for_more_tasks()
        unit = unit_of(partition)
        if unit is None:
            return
        files = self._options.files
        reading = Reading(
            columns=self._columns,
            mode=files.mode,
            has_gaps=self._options.has_gaps,
            file_system_options=files.search.file_system_options,
            row_filter=self._filter,
        )
        yield from range_rows(unit, reading)


class PushingReader(KvorumLogReader):
    """The reader that takes a query's filters, to skip what they leave out."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Remember the filters that can be used; return all, because Spark applies each again."""
        self._filter = LogFilter(pushed_conditions(filters, COLUMN_KINDS))
        return filters


class KvorumLogSource(DataSource):
    """The data source; register it with `spark.dataSource.register`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.read.format`."""
        return "kvorum-log"

    def schema(self) -> str:
        """Return the columns that the options ask for."""
        prepare_for_more_tasks()
        return spark_schema(types_of(parse_options(self.options).columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the columns of `schema`, for the given options."""
        prepare_for_more_tasks()
        options = parse_options(self.options)
        kind = PushingReader if options.is_pushing_filters else KvorumLogReader
        return kind(options, chosen_columns(options, named_types(schema)))


def planned_segments(options: SourceOptions) -> list[FileRange]:
    """Return the ranges to read, in the order of the files.

    Snapshots and bootstrap records are no segments of a topic. Raises `LogFilesError`.
    """
    files = options.files
    found = find_files(files.paths, files.search)
    segments = tuple(file for file in found.files if file.kind is FileKind.SEGMENT)
    return plan_ranges(
        found._replace(files=segments),
        range_bytes=files.range_bytes,
        has_gaps=options.has_gaps,
        file_system_options=files.search.file_system_options,
    )

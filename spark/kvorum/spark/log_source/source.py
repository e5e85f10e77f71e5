"""The data source ``kvorum-log`` as Spark calls it: schema, reader, units of work.

    from kvorum.spark import KvorumLogSource

    spark.dataSource.register(KvorumLogSource)
    records = spark.read.format("kvorum-log").option("path", "/var/kafka/orders-0").load()

There is one row per record, control records included. docs/spark/README.md lists options and
columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kvorum.log_files.find import FileKind, Search, find_files
from kvorum.log_files.ranges import FileRange, plan_ranges
from kvorum.spark.arrow_types import demand_types, spark_schema
from kvorum.spark.errors import OptionError
from kvorum.spark.log_source.columns import ARROW_TYPES, columns_named, types_of
from kvorum.spark.log_source.filters import COLUMN_KINDS, NO_FILTER, LogFilter
from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.spark.source_options import (
    FILE_OPTIONS,
    PUSH_FILTERS,
    FileOptions,
    boolean,
    column_names,
    file_options,
    given_options,
)
from kvorum.spark.spark_values import RangePartition, named_types, pushed_conditions, unit_of
from kvorum.spark.worker_process import prepare_for_more_tasks

TOPICS: Final = "topics"
COMPLETE: Final = "complete"
KNOWN: Final = (*FILE_OPTIONS, PUSH_FILTERS, TOPICS, COMPLETE)


class SourceOptions(NamedTuple):
    """The options of a query.

    `has_gaps` is whether offsets may be missing between records, as compaction leaves them.
    """

    files: FileOptions
    columns: tuple[str, ...]
    is_schema_chosen: bool
    has_gaps: bool
    is_pushing_filters: bool


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Return the options; names count in any case, as everywhere in Spark.

    Raises `OptionError` for an unknown name and for a wrong value.
    """
    given = given_options(options, KNOWN)
    names = column_names(given)
    topics = [name.strip() for name in given.get(TOPICS, "").split(",") if name.strip()]
    return SourceOptions(
        files=file_options(options, Search(topics=frozenset(topics) or None)),
        columns=tuple(ARROW_TYPES) if names is None else columns_named(names),
        is_schema_chosen=names is not None,
        has_gaps=not boolean(given, COMPLETE),
        is_pushing_filters=boolean(given, PUSH_FILTERS),
    )


def chosen_columns(options: SourceOptions, schema: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the columns of a query's schema: pairs of a name and Spark's name of the type.

    Raises `OptionError` for columns that do not exist, that have another type, or that the option
    `columns` contradicts.
    """
    columns = columns_named(name for name, _ in schema)
    demand_types(schema, ARROW_TYPES)
    if options.is_schema_chosen and set(columns) != set(options.columns):
        raise OptionError("the schema contradicts the option 'columns': give one of them")
    return columns


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
    return plan_ranges(
        found._replace(files=tuple(file for file in found.files if file.kind is FileKind.SEGMENT)),
        range_bytes=files.range_bytes,
        has_gaps=options.has_gaps,
        file_system_options=files.search.file_system_options,
    )

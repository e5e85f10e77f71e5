"""The data source ``kvorum-metadata`` as Spark calls it: schema, reader, units of work.

    from kvorum.spark import KvorumMetadataSource

    spark.dataSource.register(KvorumMetadataSource)
    records = spark.read.format("kvorum-metadata").option("path", "s3://logs/").load()

There is one row per record, control records included. docs/spark/README.md lists options and
columns.

Spark asks for the schema, for the ranges and for the rows in a process each. What only one of them
needs is imported there: the imports of everything take longer than small queries do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.types import StructType

from kvorum.log_files.find import METADATA_SEARCH, find_files
from kvorum.log_files.ranges import plan_ranges
from kvorum.spark.arrow_types import demand_types, spark_schema
from kvorum.spark.errors import OptionError
from kvorum.spark.metadata_source.columns import (
    DEFAULT_COLUMNS,
    JSON,
    JSON_COLUMN,
    STRUCT_COLUMNS,
    Column,
    columns_named,
    types_of,
)
from kvorum.spark.metadata_source.filters import COLUMN_KINDS, NO_FILTER, RowFilter
from kvorum.spark.metadata_source.query import Query
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

KNOWN: Final = (*FILE_OPTIONS, "json", "structs", PUSH_FILTERS)


class SourceOptions(NamedTuple):
    """The options of a table, besides its columns."""

    files: FileOptions
    is_pushing_filters: bool


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """Return the options; names count in any case, as everywhere in Spark.

    Raises `OptionError` for an unknown name, a wrong value, and for contradictions.
    """
    given = given_options(options, KNOWN)
    return SourceOptions(
        files=file_options(options, METADATA_SEARCH),
        is_pushing_filters=boolean(given, PUSH_FILTERS),
    )


def wanted_columns(options: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the columns that the options of a table or a stream ask for; `OptionError`."""
    given = {name.lower(): value for name, value in options.items()}
    with_json, with_structs = boolean(given, JSON), boolean(given, "structs")
    names = column_names(given)
    if names is None:
        columns = list(DEFAULT_COLUMNS)
        if with_json:
            columns.append(JSON_COLUMN)
        return (*columns, *(STRUCT_COLUMNS if with_structs else ()))
    columns = list(columns_named(names))
    if JSON in given and with_json != (JSON_COLUMN in columns):
        raise OptionError("options 'json' and 'columns' contradict each other")
    if with_structs and set(columns).isdisjoint(STRUCT_COLUMNS):
        raise OptionError("options 'structs' and 'columns' contradict each other: name the structs")
    return tuple(columns)


def chosen_columns(
    options: Mapping[str, str], schema: Sequence[tuple[str, str]]
) -> tuple[Column, ...]:
    """Return the columns of a query's schema: pairs of a name and Spark's name of the type.

    Raises `OptionError` for columns that do not exist, that have another type, or that the
    options contradict.
    """
    columns = columns_named(name for name, _ in schema)
    demand_types(schema, types_of(columns))
    is_schema_chosen = any(name.lower() in {"columns", "json", "structs"} for name in options)
    if is_schema_chosen and set(columns) != set(wanted_columns(options)):
        raise OptionError(
            "the schema contradicts the options 'columns', 'json' or 'structs': give one of them"
        )
    return columns


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
        from kvorum.spark.metadata_source.range_rows import arrow_batches  # noqa: PLC0415 - tasks alone need it

        prepare_for_more_tasks()
        unit = unit_of(partition)
        if unit is None:
            return
        files = self._options.files
        query = Query(self._columns, self._filter, files.mode, files.search.file_system_options)
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

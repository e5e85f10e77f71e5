"""The options of the source, checked: one clear line for each that is wrong."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kvorum.spark.arrow_types import demand_types
from kvorum.spark.errors import OptionError
from kvorum.spark.files.find import Search
from kvorum.spark.log_source.columns import ARROW_TYPES, columns_named
from kvorum.spark.source_options import (
    FILE_OPTIONS,
    PUSH_FILTERS,
    FileOptions,
    boolean,
    column_names,
    file_options,
    given_options,
)

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

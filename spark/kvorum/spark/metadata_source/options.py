"""The options of the source, checked: one clear line for each that is wrong."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kvorum.spark.arrow_types import demand_types
from kvorum.spark.errors import OptionError
from kvorum.spark.files.find import METADATA_SEARCH
from kvorum.spark.metadata_source.columns import (
    DEFAULT_COLUMNS,
    JSON,
    JSON_COLUMN,
    STRUCT_COLUMNS,
    Column,
    columns_named,
    types_of,
)
from kvorum.spark.source_options import (
    FILE_OPTIONS,
    PUSH_FILTERS,
    FileOptions,
    boolean,
    column_names,
    file_options,
    given_options,
)

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

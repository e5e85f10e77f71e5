"""A function over columns of bytes: its name, its arguments, and the columns of its result.

RecordFunctionError          an error that ends a query with one of these functions
├── FunctionArgumentError    arguments that a function cannot take
└── UndecodableRecordError   a record that cannot be decoded, in the mode FAILFAST
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias, cast

import pyarrow as pa

from kvorum.wire.json_form import Json

Row: TypeAlias = dict[str, Json]
"""One result: the columns that are not null, by name. Times are in microseconds."""


class RecordFunctionError(Exception):
    """A function cannot return its result; the text names the function and the reason."""


class FunctionArgumentError(RecordFunctionError, ValueError):
    """Arguments of a wrong number or type, or an unknown mode."""


class UndecodableRecordError(RecordFunctionError):
    """Bytes that are not a record of the function's topic."""


class Column(NamedTuple):
    """A column of a result, and its type in Arrow."""

    name: str
    type: pa.DataType


def struct_of(columns: Iterable[Column]) -> pa.StructType:
    """Return the type of a struct with these columns."""
    return pa.struct([pa.field(column.name, column.type) for column in columns])


def structs_of(*columns: Column) -> pa.DataType:
    """Return the type of an array of structs with these columns."""
    return pa.list_(struct_of(columns))


class Field(NamedTuple):
    """The field that fills a column: its path in Kafka's JSON form, and what becomes of its value.

    A path begins with the part of the record, `key` or `value`. Records of versions without the
    field, and tagged fields at their default, leave the column null.
    """

    column: str
    path: tuple[str, ...]
    convert: Callable[[Json], Json] | None = None


def field(column: str, path: str, convert: Callable[[Json], Json] | None = None) -> Field:
    """Return a field whose path is written with dots."""
    return Field(column, tuple(path.split(".")), convert)


def structs(
    names: Mapping[str, str], convert: Mapping[str, Callable[[Json], Json]] | None = None
) -> Callable[[Json], Json]:
    """Return a conversion of an array of structs, with the field of each column.

    `convert` has what becomes of the values of some columns.
    """
    conversions = convert or {}

    def struct(element: Mapping[str, Json]) -> Row:
        return {
            column: conversions[column](element[name]) if column in conversions else element[name]
            for column, name in names.items()
            if name in element
        }

    return lambda elements: [struct(each) for each in cast("list[Mapping[str, Json]]", elements)]


def read_fields(fields: Iterable[Field], record: Mapping[str, Json]) -> Row:
    """Return the columns that the fields of a record fill."""
    found: Row = {}
    for column, path, convert in fields:
        value: Json = record
        for name in path:
            value = value.get(name)
            if value is None:
                break
        else:
            found[column] = value if convert is None else convert(value)
    return found


class Mode(Enum):
    """The consequence of a record that cannot be decoded, in Spark's own words.

    With `PERMISSIVE` the result has the reason in `error`; with `FAILFAST` the query fails.
    """

    PERMISSIVE = "PERMISSIVE"
    FAILFAST = "FAILFAST"


@dataclass(frozen=True, slots=True)
class RecordFunction:
    """A function of SQL; `row` takes one value for each of `arguments`, bytes or None."""

    name: str
    arguments: tuple[str, ...]
    columns: tuple[Column, ...]
    row: Callable[..., Row | None]


def mode_of(text: str | None) -> Mode:
    """Return the mode that a text names, in upper or lower case."""
    try:
        return Mode((text or "").upper())
    except ValueError:
        known = " or ".join(mode.value for mode in Mode)
        raise FunctionArgumentError(f"unknown mode {text!r}: it must be {known}") from None

"""Columns whose values come from fields of several types of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record
from kvorum.metadata.record_types import record_type
from kvorum.spark.columnar.arrow_values import Array, masked
from kvorum.spark.columnar.column_values import Field, values_of
from kvorum.spark.columnar.field_places import UnknownPlaceError, find_fields
from kvorum.spark.columnar.record_run import RecordRun
from kvorum.spark.columnar.varints import Ints
from kvorum.wire.json_form import FieldFacts, fields_of, to_json


class BodyColumn(NamedTuple):
    """A column, its type, and the field (in Kafka's JSON form) that fills it, by record type.

    `fields` is by the number of the record type; other types leave the column null.
    """

    name: str
    type: pa.DataType
    fields: Mapping[int, str]


def body_columns(run: RecordRun, columns: Sequence[BodyColumn]) -> list[Array]:
    """Return the columns, one value for each record of `run`.

    Raises `MetadataParseError` for a record that the codec cannot read. A record whose wanted
    fields can be found without its codec is not checked beyond them.
    """
    values = [values_of(column.type, len(run.types)) for column in columns]
    unknown: list[Ints] = []
    kinds = run.kinds
    for kind in np.flatnonzero(np.bincount(kinds)).tolist():
        rows = np.flatnonzero(kinds == kind)
        try:
            found = _found(run, rows, kind >> 8, kind & 0xFF, columns)
        except UnknownPlaceError:
            unknown.append(rows)
            continue
        for of_column, field in zip(values, found, strict=True):
            if field is not None:
                of_column.put(run.data, rows, field)
    try:
        arrays = [of_column.array(run.data) for of_column in values]
    except pa.ArrowInvalid:
        return _decoded(run, np.arange(len(kinds)), columns)
    return _with_decoded(arrays, run, np.concatenate(unknown), columns) if unknown else arrays


def _found(
    run: RecordRun, rows: Ints, key: int, version: int, columns: Sequence[BodyColumn]
) -> list[Field | None]:
    """Return where each column is in records of one type and version, which are not decoded."""
    kind = record_type(key)
    if not kind.MIN_VERSION <= version <= kind.MAX_VERSION:
        raise UnknownPlaceError
    names = [column.fields.get(key) for column in columns]
    wanted = {name for name in names if name is not None}
    if not wanted:
        return [None] * len(columns)
    places = find_fields(
        run.data, run.starts[rows], run.ends[rows], kind=kind, version=version, wanted=wanted
    )
    fields = {
        field.json_name: Field(field.kind, _omitted(field, version), places[field.json_name])
        for field in fields_of(kind)
        if field.json_name in places
    }
    return [fields.get(name) if name is not None else None for name in names]


def _omitted(field: FieldFacts, version: int) -> object:
    """Return the value that Kafka's JSON form leaves out: a tagged field's default."""
    return field.default if field.is_tagged_in(version) else None


def _with_decoded(
    arrays: Sequence[Array], run: RecordRun, rows: Ints, columns: Sequence[BodyColumn]
) -> list[Array]:
    """Return the columns with the values of the records at `rows`, which have none in `arrays`."""
    place = np.zeros(len(run.types), np.int64)
    place[rows] = np.arange(len(rows))
    is_missing = np.ones(len(place), np.bool_)
    is_missing[rows] = False
    indices: Any = masked(place, is_missing)
    decoded = _decoded(run, rows, columns)
    return [
        pc.coalesce(array, values.take(indices)) if values.null_count < len(values) else array
        for array, values in zip(arrays, decoded, strict=True)
    ]


def _decoded(run: RecordRun, rows: Ints, columns: Sequence[BodyColumn]) -> list[Array]:
    """Return the columns of the records at `rows`, each decoded by its codec."""
    values: list[list[Any]] = [[] for _ in columns]
    for row in rows:
        start, end = run.starts[row] - SHORT_HEADER_BYTES, run.ends[row]
        message, version = decode_record(run.data[start:end].tobytes())
        fields = to_json(message, version)
        for column, into in zip(columns, values, strict=True):
            into.append(fields.get(column.fields.get(int(run.types[row]), "")))
    return [pa.array(into, column.type) for column, into in zip(columns, values, strict=True)]

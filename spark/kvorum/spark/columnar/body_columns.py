"""Columns whose values come from fields of several types of records.

Types of records may write a column's field in several ways. A record has one type, so it has a
value in one of them at most: the values are taken in from the records of one type after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record, record_type
from kvorum.spark.columnar.arrow_values import Array, gather, masked, numbers
from kvorum.spark.columnar.field_places import (
    ABSENT,
    Bytes,
    Ints,
    Places,
    UnknownPlaceError,
    find_fields,
)
from kvorum.spark.columnar.record_places import RecordRun
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
    values = [_values_of(column.type, len(run.types)) for column in columns]
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
    indices = _indices(rows, len(run.types))
    return [
        pc.coalesce(array, values.take(indices)) if values.null_count < len(values) else array
        for array, values in zip(arrays, _decoded(run, rows, columns), strict=True)
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


class Field(NamedTuple):
    """A field in records of one type and version, and where it is in each of them.

    `kind` is the schema's name of its type. A value that equals `omitted` is null.
    """

    kind: str
    omitted: object
    places: Places


def _values_of(kind: pa.DataType, count: int) -> _NumberValues | _GatheredValues:
    """Return the values of a column of `count` rows, all null at first."""
    is_number = pa.types.is_primitive(kind)
    return _NumberValues(kind, count) if is_number else _GatheredValues(kind, count)


class _NumberValues:
    """Numbers, read as they are taken in; the column's type holds those of all fields."""

    def __init__(self, kind: pa.DataType, count: int) -> None:
        self._values: Any = np.zeros(count, kind.to_pandas_dtype())
        self._is_null = np.ones(count, np.bool_)

    def put(self, data: Bytes, rows: Ints, field: Field) -> None:
        """Take in a field of the records with the indexes `rows`."""
        found = numbers(data, field.places, field.kind, omitted=field.omitted)
        self._values[rows] = found.values
        self._is_null[rows] = found.is_null

    def array(self, data: Bytes) -> Array:  # noqa: ARG002 - was read before
        """Return the values."""
        return masked(self._values, self._is_null)


class _GatheredValues:
    """Texts and lists, gathered from their places when all of these are known."""

    def __init__(self, kind: pa.DataType, count: int) -> None:
        self._kind = kind
        self._count = count
        self._by_kind: dict[str, list[_Part]] = {}

    def put(self, data: Bytes, rows: Ints, field: Field) -> None:  # noqa: ARG002 - is read later
        """Take in a field of the records with the indexes `rows`."""
        starts, counts = field.places
        present = np.flatnonzero(counts != ABSENT)
        part = _Part(rows, field.places)
        if present.size < len(rows):
            part = _Part(rows[present], Places(starts[present], counts[present]))
        if present.size:
            self._by_kind.setdefault(field.kind, []).append(part)

    def array(self, data: Bytes) -> Array:
        """Return the values; raises as `gather` does."""
        # The stubs of Arrow ask for a type that is known when the code is checked.
        arrow: Any = pa
        if not self._by_kind:
            nulls: Array = arrow.nulls(self._count, self._kind)
            return nulls
        parts = {kind: _joined(of_kind) for kind, of_kind in self._by_kind.items()}
        if len(parts) == 1:
            ((kind, part),) = parts.items()
            if len(part.rows) * 2 > self._count:
                return _gathered(data, part.spread(self._count), kind, self._kind)
        values = [_gathered(data, part.places, kind, self._kind) for kind, part in parts.items()]
        rows = np.concatenate([part.rows for part in parts.values()])
        found: Array = arrow.concat_arrays(values).take(_indices(rows, self._count))
        return found


class _Part(NamedTuple):
    """Values that are there: the indexes of their records, and their places."""

    rows: Ints
    places: Places

    def spread(self, count: int) -> Places:
        """Return the places of all of `count` records."""
        starts, counts = np.zeros(count, np.int64), np.full(count, ABSENT, np.int64)
        starts[self.rows], counts[self.rows] = self.places
        return Places(starts, counts)


def _gathered(data: Bytes, places: Places, written_as: str, kind: pa.DataType) -> Array:
    found: Array = gather(data, places, written_as).cast(kind)
    return found


def _joined(parts: Sequence[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate([part.rows for part in parts])
    starts, counts = (np.concatenate(each) for each in zip(*(p.places for p in parts), strict=True))
    return _Part(rows, Places(starts, counts))


def _indices(rows: Ints, count: int) -> Any:
    """Return for each of `count` records its index in `rows`, null where it is not there."""
    indices = np.zeros(count, np.int64)
    indices[rows] = np.arange(len(rows))
    is_missing = np.ones(count, np.bool_)
    is_missing[rows] = False
    return masked(indices, is_missing)

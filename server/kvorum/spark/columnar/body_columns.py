"""Columns whose values come from fields of several types of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record
from kvorum.metadata.record_types import record_type
from kvorum.spark.columnar.arrow_values import Array, gather, masked
from kvorum.spark.columnar.field_places import ABSENT, Places, UnknownPlaceError, find_fields
from kvorum.spark.columnar.record_run import RecordRun
from kvorum.spark.columnar.varints import Bytes, Ints
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
    places = [_FieldPlaces(len(run.types)) for _ in columns]
    unknown: list[Ints] = []
    groups = run.types << 8 | run.versions
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        try:
            found = _found(run, rows, int(group >> 8), int(group & 0xFF), columns)
        except UnknownPlaceError:
            unknown.append(rows)
            continue
        for of_column, field in zip(places, found, strict=True):
            if field is not None:
                of_column.put(rows, *field)
    try:
        arrays = [
            of_column.gathered(run.data, column.type)
            for of_column, column in zip(places, columns, strict=True)
        ]
    except pa.ArrowInvalid:
        return _decoded(run, np.arange(len(groups)), columns)
    return _with_decoded(arrays, run, np.concatenate(unknown), columns) if unknown else arrays


class _FieldForm(NamedTuple):
    """How a field is written: the schema's name of its type, and the value that is left out."""

    kind: str
    omitted: object


class _FieldPlaces:
    """Where the values of one column are, of records of all types in the order of the run.

    The types may write the field in several forms; a record has a value in one of them at most.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._by_form: dict[_FieldForm, Places] = {}

    def put(self, rows: Ints, form: _FieldForm, places: Places) -> None:
        """Take in the places of the records at `rows`."""
        into = self._by_form.get(form)
        if into is None:
            zeros = np.zeros(self._count, np.int64)
            into = self._by_form[form] = Places(zeros, np.full(self._count, ABSENT, np.int64))
        into.starts[rows] = places.starts
        into.counts[rows] = places.counts

    def gathered(self, data: Bytes, kind: pa.DataType) -> Array:
        """Return the values; raises as `gather` does."""
        parts = [
            gather(data, places, form.kind, omitted=form.omitted).cast(kind)
            for form, places in self._by_form.items()
        ]
        # The stubs of Arrow ask for a type that is known when the code is checked.
        nulls: Any = pa.nulls
        found: Array = _coalesced(parts) if parts else nulls(self._count, kind)
        return found


def _coalesced(parts: Sequence[Array]) -> Array:
    """Return at each place the value of the part that has one."""
    found: Array = parts[0] if len(parts) == 1 else pc.coalesce(*parts)
    return found


def _found(
    run: RecordRun, rows: Ints, key: int, version: int, columns: Sequence[BodyColumn]
) -> list[tuple[_FieldForm, Places] | None]:
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
    forms = {
        field.json_name: _FieldForm(field.kind, _omitted(field, version))
        for field in fields_of(kind)
        if field.json_name in places
    }
    return [
        (forms[name], places[name]) if name is not None and name in places else None
        for name in names
    ]


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
        _coalesced([array, values.take(indices)]) if values.null_count < len(values) else array
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

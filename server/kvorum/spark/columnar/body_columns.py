"""Columns whose values come from fields of several types of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record
from kvorum.metadata.record_types import record_type
from kvorum.spark.columnar.arrow_values import Array, gather
from kvorum.spark.columnar.field_places import UnknownPlaceError, find_fields
from kvorum.spark.columnar.record_run import RecordRun
from kvorum.spark.columnar.varints import Ints
from kvorum.wire.json_form import FieldFacts, fields_of, to_json
from kvorum.wire.primitives import Message


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
    parts: list[list[Array]] = [[] for _ in columns]
    order: list[Ints] = []
    groups = run.types << 8 | run.versions
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        order.append(rows)
        for into, part in zip(
            parts, _group(run, rows, int(group >> 8), int(group & 0xFF), columns), strict=True
        ):
            into.append(part)
    place = np.empty(len(groups), np.int64)
    place[np.concatenate(order)] = np.arange(len(groups))
    indices: Any = pa.array(place)
    return [pa.concat_arrays(part).take(indices) for part in parts]


def _group(
    run: RecordRun, rows: Ints, key: int, version: int, columns: Sequence[BodyColumn]
) -> list[Array]:
    """Return the columns for the records of one type and version."""
    wanted = {column.fields[key] for column in columns if key in column.fields}
    kind = record_type(key)
    try:
        values = _found(run, rows, kind, version, wanted)
    except (UnknownPlaceError, pa.ArrowInvalid):
        return _decoded(run, rows, key, columns)
    nothing = pa.nulls(len(rows))
    return [values.get(column.fields.get(key, ""), nothing).cast(column.type) for column in columns]


def _found(
    run: RecordRun, rows: Ints, kind: type[Message], version: int, wanted: set[str]
) -> dict[str, Array]:
    """Return the wanted fields by name, found without decoding the records."""
    if not kind.MIN_VERSION <= version <= kind.MAX_VERSION:
        raise UnknownPlaceError
    facts = {field.json_name: field for field in fields_of(kind)}
    places = find_fields(
        run.data, run.starts[rows], run.ends[rows], kind=kind, version=version, wanted=wanted
    )
    return {
        name: gather(run.data, place, facts[name].kind, omitted=_omitted(facts[name], version))
        for name, place in places.items()
    }


def _omitted(field: FieldFacts, version: int) -> object:
    """Return the value that Kafka's JSON form leaves out: a tagged field's default."""
    return field.default if field.is_tagged_in(version) else None


def _decoded(run: RecordRun, rows: Ints, key: int, columns: Sequence[BodyColumn]) -> list[Array]:
    """Return the columns for records of one type, each decoded by its codec."""
    values: list[list[Any]] = [[] for _ in columns]
    for row in rows:
        start, end = run.starts[row] - SHORT_HEADER_BYTES, run.ends[row]
        message, version = decode_record(run.data[start:end].tobytes())
        fields = to_json(message, version)
        for column, into in zip(columns, values, strict=True):
            into.append(fields.get(column.fields.get(key, "")))
    return [pa.array(into, column.type) for column, into in zip(columns, values, strict=True)]

"""The values of one column, taken in from the records of one type after the other.

Types of records may write a column's field in several ways. A record has one type, so it has a
value in one of them at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from kvorum.spark.columnar.arrow_values import Array, gather, masked, numbers
from kvorum.spark.columnar.field_places import ABSENT, Places
from kvorum.spark.columnar.varints import Bytes, Ints


class Field(NamedTuple):
    """A field in records of one type and version, and where it is in each of them.

    `kind` is the schema's name of its type. A value that equals `omitted` is null.
    """

    kind: str
    omitted: object
    places: Places


class ColumnValues(Protocol):
    """The values of a column, all null at first."""

    def put(self, data: Bytes, rows: Ints, field: Field) -> None:
        """Take in a field of the records with the indexes `rows`."""

    def array(self, data: Bytes) -> Array:
        """Return the values; raises as `gather` does."""
        ...


def values_of(kind: pa.DataType, count: int) -> ColumnValues:
    """Return the values of a column of `count` rows."""
    is_number = pa.types.is_primitive(kind)
    return NumberValues(kind, count) if is_number else GatheredValues(kind, count)


class NumberValues:
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


class GatheredValues:
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

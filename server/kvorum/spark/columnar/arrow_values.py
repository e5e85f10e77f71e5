"""Values of fields as Arrow arrays, gathered from their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kvorum.spark.columnar.field_places import ABSENT, FIXED_BYTES, Places
from kvorum.spark.columnar.varints import Bytes, Flags, Ints
from kvorum.spark.timestamps import TIMESTAMP_MS_MAX
from kvorum.wire.uuid_text import uuid_to_text

Array: TypeAlias = "pa.Array[Any]"

_NUMBERS: Final[Mapping[str, np.dtype[Any]]] = MappingProxyType(
    {
        "bool": np.dtype(np.uint8),
        "int8": np.dtype(np.int8),
        "int16": np.dtype(">i2"),
        "uint16": np.dtype(">u2"),
        "int32": np.dtype(">i4"),
        "int64": np.dtype(">i8"),
        "float64": np.dtype(">f8"),
    }
)
_UUID: Final = "uuid"
_RAW_UUID: Final = np.dtype("V16")
_LIST: Final = "[]"


def gather(data: Bytes, places: Places, kind: str, *, omitted: object = None) -> Array:
    """Return the values of a field; null where it is null, or left out.

    `kind` is the schema's name of the type: a number, a uuid (as text), a string, or a list of
    numbers or uuids. A number that equals `omitted` is null too. Raises ValueError
    (`ArrowInvalid`) for text that is not UTF-8.
    """
    if kind.startswith(_LIST):
        return _lists(data, places, kind.removeprefix(_LIST))
    if kind in FIXED_BYTES:
        return _fixed(data, places.starts, kind, places.counts == ABSENT, omitted)
    return _strings(data, places)


def taken(values: Sequence[Any], kind: pa.DataType, indices: Ints) -> Array:
    """Return the values of a type at `indices`."""
    array: Any = pa.array(values, kind)
    found: Array = array.take(pa.array(indices))
    return found


def masked(values: Ints, is_null: Flags) -> Array:
    """Return numbers, and null where `is_null`."""
    found: Array = pa.array(values, mask=is_null)
    return found


def timestamps(milliseconds: Ints) -> Array:
    """Return times in Spark's microseconds; null for "no timestamp" and a time out of range."""
    is_null = (milliseconds < 0) | (milliseconds > TIMESTAMP_MS_MAX)
    return masked(np.where(is_null, 0, milliseconds) * 1000, is_null)


def _fixed(data: Bytes, starts: Ints, kind: str, is_null: Flags, omitted: object) -> Array:
    dtype = _NUMBERS.get(kind, _RAW_UUID)
    # A value begins at every byte, and overlaps those that begin at the bytes behind.
    values = np.ndarray(len(data) - dtype.itemsize + 1, dtype, data, strides=(1,))
    values = values[np.where(is_null, 0, starts)]
    if kind == _UUID:
        return _uuid_texts(values, is_null)
    values = values.astype(_native(kind))
    if omitted is not None:
        is_null = is_null | (values == omitted)
    found: Array = pa.array(values, mask=is_null)
    return found


def _native(kind: str) -> np.dtype[Any]:
    return np.dtype(np.bool_) if kind == "bool" else _NUMBERS[kind].newbyteorder("=")


def _uuid_texts(raw: NDArray[np.void], is_null: Flags) -> Array:
    """Return uuids as text, each different one turned into text once."""
    count = len(raw)
    kind = pa.binary(FIXED_BYTES[_UUID])
    uuids: Any = pa.Array.from_buffers(kind, count, [None, pa.py_buffer(raw.tobytes())])
    encoded = uuids.dictionary_encode()
    texts: Any = pa.array([uuid_to_text(one) for one in encoded.dictionary.to_pylist()])
    found: Array = texts.take(pa.array(encoded.indices.to_numpy(), mask=is_null))
    return found.cast(pa.string())


def _strings(data: Bytes, places: Places) -> Array:
    lengths = np.maximum(places.counts, 0)
    offsets = _list_offsets(lengths)
    content = data[_each_position(places.starts, lengths, offsets)]
    array = pa.StringArray.from_buffers(
        len(lengths),
        pa.py_buffer(offsets.tobytes()),
        pa.py_buffer(content.tobytes()),
        _validity(places.counts != ABSENT),
    )
    array.validate(full=True)
    return array


def _lists(data: Bytes, places: Places, element: str) -> Array:
    counts = np.maximum(places.counts, 0)
    offsets = _list_offsets(counts)
    size = FIXED_BYTES[element]
    firsts = np.repeat(places.starts, counts)
    within = np.arange(len(firsts)) - np.repeat(offsets[:-1].astype(np.int64), counts)
    starts = firsts + within * size
    values = _fixed(data, starts, element, np.zeros(len(starts), np.bool_), None)
    return pa.ListArray.from_buffers(
        pa.list_(values.type),
        len(counts),
        [_validity(places.counts != ABSENT), pa.py_buffer(offsets.tobytes())],
        children=[values],
    )


def _list_offsets(counts: Ints) -> NDArray[np.int32]:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def _each_position(starts: Ints, lengths: Ints, offsets: NDArray[np.int32]) -> Ints:
    """Return the position of every byte of every value."""
    firsts = np.repeat(starts - offsets[:-1], lengths)
    return np.arange(len(firsts)) + firsts


def _validity(is_present: Flags) -> pa.Buffer | None:
    if is_present.all():
        return None
    return pa.py_buffer(np.packbits(is_present, bitorder="little").tobytes())

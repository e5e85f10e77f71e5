"""Values of fields as Arrow arrays, gathered from their places."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kvorum.spark.arrow_types import NO_TIMESTAMP, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from kvorum.spark.columnar.field_places import ABSENT, FIXED_BYTES, Bytes, Flags, Ints, Places
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


class Numbers(NamedTuple):
    """Numbers, and which of them stand for null."""

    values: NDArray[Any]
    is_null: Flags


def numbers(data: Bytes, places: Places, kind: str, *, omitted: object = None) -> Numbers:
    """Return the values of a field that is a number of `kind`, the schema's name of the type.

    Null where it is null or left out, and where it equals `omitted`.
    """
    is_null = places.counts == ABSENT
    values = _fixed(data, np.where(is_null, 0, places.starts), _NUMBERS[kind])
    values = values.astype(_native(kind))
    if omitted is not None:
        is_null |= values == omitted
    return Numbers(values, is_null)


def gather(data: Bytes, places: Places, kind: str) -> Array:
    """Return the values of a field; null where it is null, or left out.

    `kind` is the schema's name of the type: a uuid (as text), a string, or a list of numbers or
    uuids. Raises ValueError (`ArrowInvalid`) for text that is not UTF-8.
    """
    if kind.startswith(_LIST):
        return _lists(data, places, kind.removeprefix(_LIST))
    return _uuids(data, places) if kind == _UUID else _strings(data, places)


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
    is_out_of_range = (milliseconds < TIMESTAMP_MS_MIN) | (milliseconds > TIMESTAMP_MS_MAX)
    is_null = is_out_of_range | (milliseconds == NO_TIMESTAMP)
    return masked(np.where(is_null, 0, milliseconds) * 1000, is_null)


def _fixed(data: Bytes, starts: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
    # A value begins at every byte, and overlaps those that begin at the bytes after it.
    everywhere = np.ndarray(len(data) - dtype.itemsize + 1, dtype, data, strides=(1,))
    found: NDArray[Any] = everywhere[starts]
    return found


def _native(kind: str) -> np.dtype[Any]:
    return np.dtype(np.bool_) if kind == "bool" else _NUMBERS[kind].newbyteorder("=")


def _uuids(data: Bytes, places: Places) -> Array:
    """Return uuids as text, each different one turned into text once."""
    is_null = places.counts == ABSENT
    raw = _fixed(data, np.where(is_null, 0, places.starts), _RAW_UUID)
    buffers = [_validity(~is_null), pa.py_buffer(raw.tobytes())]
    uuids: Any = pa.Array.from_buffers(pa.binary(FIXED_BYTES[_UUID]), len(raw), buffers)
    encoded = uuids.dictionary_encode()
    known = [uuid_to_text(one) for one in encoded.dictionary.to_pylist()]
    texts: Any = pa.array(known, pa.string())
    found: Array = texts.take(encoded.indices)
    return found


def _strings(data: Bytes, places: Places) -> Array:
    lengths = np.maximum(places.counts, 0)
    offsets = _list_offsets(lengths)
    array = pa.StringArray.from_buffers(
        len(lengths),
        pa.py_buffer(offsets.tobytes()),
        pa.py_buffer(data[_each_position(places.starts, lengths, 1)].tobytes()),
        _validity(places.counts != ABSENT),
    )
    array.validate(full=True)
    return array


def _lists(data: Bytes, places: Places, element: str) -> Array:
    counts = np.maximum(places.counts, 0)
    offsets = _list_offsets(counts)
    starts = _each_position(places.starts, counts, FIXED_BYTES[element])
    if element == _UUID:
        values = _uuids(data, Places(starts, np.ones_like(starts)))
    else:
        values = pa.array(_fixed(data, starts, _NUMBERS[element]).astype(_native(element)))
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


def _each_position(starts: Ints, counts: Ints, size: int) -> Ints:
    """Return the position of every element of every value; an element has `size` bytes."""
    # Many records have no value, and then nothing need be done for them.
    rows = np.flatnonzero(counts)
    starts, counts = starts[rows], counts[rows]
    firsts = np.cumsum(counts) - counts
    found: Ints = np.repeat(starts - firsts * size, counts)
    return found + np.arange(len(found)) * size


def _validity(is_present: Flags) -> pa.Buffer | None:
    if is_present.all():
        return None
    return pa.py_buffer(np.packbits(is_present, bitorder="little").tobytes())

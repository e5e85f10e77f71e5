"""The places of many records' fields by their schema, and numbers of variable length there."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kvorum.wire.json_form import FieldFacts, fields_of
from kvorum.wire.primitives import Message

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

NOWHERE: Final = 1 << 40
"""A position after every buffer: that of what cannot be read."""
VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10
UINT32_MAX: Final = 2**32 - 1

FIXED_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "bool": 1,
        "int8": 1,
        "int16": 2,
        "uint16": 2,
        "int32": 4,
        "int64": 8,
        "float64": 8,
        "uuid": 16,
    }
)
"""Kinds of fields that always take the same number of bytes."""
COUNTED: Final = frozenset({"string", "bytes"})
"""Kinds of fields that begin with their length."""
ABSENT: Final = -1
"""The count of a field that has no value."""


class Numbers(NamedTuple):
    """The numbers at some positions, and the positions after them.

    Where a number does not end, or takes more than 62 bits, the position is after `NOWHERE`.
    """

    values: Ints
    ends: Ints


def unsigned_varints(data: Bytes, positions: Ints, bytes_max: int = VARINT_BYTES_MAX) -> Numbers:
    """Return the unsigned numbers at `positions`; positions outside `data` give any number."""
    first = data.take(positions, mode="clip")
    values = first.astype(np.int64)
    ends = positions + 1
    longer = np.flatnonzero(first > 0x7F)
    if longer.size:
        values[longer] &= 0x7F
        _read_more(data, values, ends, longer, min(bytes_max, VARLONG_BYTES_MAX - 1))
        if bytes_max == VARINT_BYTES_MAX:
            # Bits beyond the number's width are dropped, as by the codec.
            values[longer] &= UINT32_MAX
    return Numbers(values, ends)


def signed_varints(data: Bytes, positions: Ints, bytes_max: int = VARINT_BYTES_MAX) -> Numbers:
    """Return the zigzag numbers at `positions`; positions outside `data` give any number."""
    zigzag, ends = unsigned_varints(data, positions, bytes_max)
    return Numbers((zigzag >> 1) ^ -(zigzag & 1), ends)


def _read_more(data: Bytes, values: Ints, ends: Ints, longer: Ints, bytes_max: int) -> None:
    """Add the bytes after the first to the numbers with the indexes `longer`."""
    for index in range(1, bytes_max):
        following = data.take(ends[longer], mode="clip")
        values[longer] |= (following & 0x7F).astype(np.int64) << (7 * index)
        ends[longer] += 1
        longer = longer[following > 0x7F]
        if not longer.size:
            return
    ends[longer] = NOWHERE


class Places(NamedTuple):
    """The begin of a field in each record, and the number of its bytes or elements.

    `counts` is `ABSENT` where the field is null, or tagged and left out; 1 for a field of fixed
    size. `starts` has a meaning only where `counts` is not `ABSENT`.
    """

    starts: Ints
    counts: Ints


class UnknownPlaceError(Exception):
    """A wanted field comes after one of a size that only the codec knows, or records do not fit."""


def find_fields(
    data: Bytes,
    starts: Ints,
    ends: Ints,
    *,
    kind: type[Message],
    version: int,
    wanted: Collection[str],
) -> dict[str, Places]:
    """Return the places of the `wanted` fields (names of Kafka's JSON form) of all records.

    `starts` and `ends` bound the bodies, which are of one `kind` in one `version`. A field that
    this version does not have is left out. Raises `UnknownPlaceError`.
    """
    fields = [field for field in fields_of(kind) if field.is_in(version)]
    tagged = {field.tag: field for field in fields if field.is_tagged_in(version)}
    plain = [field for field in fields if not field.is_tagged_in(version)]
    missing = {field.json_name for field in fields} & set(wanted)
    wanted_tags = {tag: field for tag, field in tagged.items() if field.json_name in missing}
    missing -= {field.json_name for field in wanted_tags.values()}
    found: dict[str, Places] = {}
    pos = starts
    for field in plain:
        if not missing and not wanted_tags:
            break
        places, pos = _plain_field(data, pos, field)
        if not field.is_nullable_in(version) and (places.counts == ABSENT).any():
            raise UnknownPlaceError
        if field.json_name in missing:
            found[field.json_name] = places
            missing.discard(field.json_name)
    if wanted_tags:
        found |= _tagged_fields(data, pos, ends, wanted_tags)
    elif (pos > ends).any():
        raise UnknownPlaceError
    return found


def _plain_field(data: Bytes, pos: Ints, field: FieldFacts) -> tuple[Places, Ints]:
    """Return the places of a field that begins at `pos`, and the positions after it."""
    size = FIXED_BYTES.get(field.kind)
    if size is not None:
        return Places(pos, np.ones_like(pos)), pos + size
    element_bytes = _element_bytes(field.kind)
    lengths, pos = unsigned_varints(data, pos)
    counts = lengths - 1
    return Places(pos, counts), pos + np.maximum(counts, 0) * element_bytes


def _element_bytes(kind: str) -> int:
    if kind in COUNTED:
        return 1
    size = FIXED_BYTES.get(kind.removeprefix("[]"))
    if size is None:
        raise UnknownPlaceError
    return size


def _tagged_fields(
    data: Bytes, pos: Ints, ends: Ints, wanted: Mapping[int | None, FieldFacts]
) -> dict[str, Places]:
    """Return the places of tagged fields; the tagged section begins at `pos`."""
    found = {
        field.json_name: Places(np.zeros_like(pos), np.full_like(pos, ABSENT))
        for field in wanted.values()
    }
    remaining, pos = unsigned_varints(data, pos)
    rows = np.arange(len(pos))
    while True:
        is_done = remaining == 0
        if ((pos != ends) & is_done).any():
            raise UnknownPlaceError
        if is_done.any():
            others = np.flatnonzero(~is_done)
            rows, remaining, pos, ends = (of[others] for of in (rows, remaining, pos, ends))
        if not rows.size:
            return found
        tags, begins = unsigned_varints(data, pos)
        sizes, begins = unsigned_varints(data, begins)
        pos = begins + sizes
        remaining -= 1
        if (pos > ends).any():
            raise UnknownPlaceError
        for tag, field in wanted.items():
            here = np.flatnonzero(tags == tag)
            if here.size:
                places, after = _plain_field(data, begins[here], field)
                if (after != pos[here]).any():
                    raise UnknownPlaceError
                target = found[field.json_name]
                target.starts[rows[here]] = places.starts
                target.counts[rows[here]] = places.counts

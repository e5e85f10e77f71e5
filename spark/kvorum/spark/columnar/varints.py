"""Numbers of variable length at many places of a buffer."""

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

NOWHERE: Final = 1 << 40
"""A position after every buffer: that of what cannot be read."""
VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10


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

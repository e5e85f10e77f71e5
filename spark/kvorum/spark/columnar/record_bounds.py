"""The beginning and end of each record of many batches.

A record's place is known only from the length of the one before it. So the first records of all
batches are found at once, then the second ones, and so on while many batches have that many; the
rest of the few long batches is found record by record.
"""

from array import array
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np

from kvorum.spark.columnar.varints import VARINT_BYTES_MAX, Ints, signed_varints

_TOGETHER_MIN: Final = 256
"""From how many batches on it is quicker to find a record of each together."""
_NO_STEP: Final = 0
_BEYOND: Final = 1 << 40


def _steps() -> tuple[int, ...]:
    """Return how far on the next record is, by the first byte of a record's length.

    A length is zigzag, so an odd one is negative. `_NO_STEP` where the byte does not say it alone.
    """
    return tuple(_NO_STEP if byte > 0x7F or byte & 1 else 1 + (byte >> 1) for byte in range(256))


_STEPS: Final = _steps()


class Bounds(NamedTuple):
    """The begin of records after their length, and their end; in the order of the log."""

    starts: Ints
    ends: Ints


def find_bounds(content: bytes, starts: Ints, ends: Ints, counts: Ints) -> Bounds | None:
    """Return the bounds of the records of batches; None where lengths do not lead to their ends.

    `content[starts[i]:ends[i]]` are the `counts[i]` records of a batch, and `content` goes on
    after the last of them for at least as long as a number may be.
    """
    # A record takes a byte at least: no memory is set aside for what cannot be there.
    if (counts > ends - starts).any():
        return None
    data = np.frombuffer(content, np.uint8)
    firsts = np.cumsum(counts) - counts
    found = Bounds(*(np.empty(int(counts.sum()), np.int64) for _ in Bounds._fields))
    pos = starts.copy()
    step = 0
    rows = np.flatnonzero(counts)
    while rows.size >= _TOGETHER_MIN:
        lengths, begins = signed_varints(data, pos[rows])
        after = begins + lengths
        if ((lengths < 0) | (after > ends[rows])).any():
            return None
        found.starts[firsts[rows] + step] = begins
        found.ends[firsts[rows] + step] = after
        pos[rows] = after
        step += 1
        rows = rows[counts[rows] > step]
    left = counts[rows] - step
    places = _following(content, pos[rows], ends[rows], left)
    if places is None:
        return None
    pos[rows] = ends[rows]
    indexes = _indexes(firsts[rows] + step, left)
    lengths, found.starts[indexes] = signed_varints(data, places)
    found.ends[indexes] = found.starts[indexes] + lengths
    return found if np.array_equal(pos, ends) else None


def _indexes(firsts: Ints, counts: Ints) -> Ints:
    """Return `counts[i]` numbers that count up from `firsts[i]`, for each i."""
    before = np.cumsum(counts) - counts
    found: Ints = np.repeat(firsts - before, counts)
    return found + np.arange(len(found))


def _following(content: bytes, starts: Ints, ends: Ints, counts: Ints) -> Ints | None:
    """Return where each of `counts` records of each batch begins with its length.

    The first of them begin at `starts`. None where they do not lead to the batches' `ends`.
    """
    places = array("q")
    add = places.append
    try:
        for start, end, count in zip(starts.tolist(), ends.tolist(), counts.tolist(), strict=True):
            pos: int = start
            # This is done for each record alone, so it is short and calls little.
            for _ in repeat(None, count):
                add(pos)
                pos += _STEPS[content[pos]] or _long_step(content, pos)
            if pos != end:
                return None
    except IndexError:
        return None
    return np.frombuffer(places, np.int64)


def _long_step(content: bytes, pos: int) -> int:
    """Return how far on the next record is, by a length of any number of bytes.

    That is `_BEYOND` every end for what is not a length; raises IndexError for one that is cut off.
    """
    length = 0
    for index in range(VARINT_BYTES_MAX):
        byte = content[pos + index]
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return _BEYOND if length & 1 else index + 1 + (length >> 1)
    return _BEYOND

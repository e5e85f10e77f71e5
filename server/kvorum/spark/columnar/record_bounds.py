"""Where each record of many batches begins and ends.

A record's place is known only from the length of the one before it. So the first records of all
batches are found at once, then the second ones, and so on while many batches have that many; the
rest of the few long batches is found record by record.
"""

from __future__ import annotations

from itertools import repeat
from typing import Final, NamedTuple

import numpy as np

from kvorum.spark.columnar.varints import Bytes, Ints, signed_varints

_TOGETHER_MIN: Final = 24
"""From how many batches on it is quicker to find a record of each together."""


class Bounds(NamedTuple):
    """Where records begin, behind their length, and where they end; in the order of the log."""

    starts: Ints
    ends: Ints


def find_bounds(data: Bytes, starts: Ints, ends: Ints, counts: Ints) -> Bounds | None:
    """Return the bounds of the records of batches; None where lengths do not lead to their ends.

    `data[starts[i]:ends[i]]` are the `counts[i]` records of a batch, and `data` goes on behind the
    last of them for at least as long as a number may be.
    """
    # A record takes a byte at least: no memory is set aside for what cannot be there.
    if (counts > ends - starts).any():
        return None
    firsts = np.cumsum(counts) - counts
    found = Bounds(*(np.empty(int(counts.sum()), np.int64) for _ in Bounds._fields))
    pos = starts.copy()
    step = 0
    rows = np.flatnonzero(counts)
    while rows.size >= _TOGETHER_MIN:
        lengths, begins = signed_varints(data, pos[rows])
        behind = begins + lengths
        if ((lengths < 0) | (behind > ends[rows])).any():
            return None
        found.starts[firsts[rows] + step] = begins
        found.ends[firsts[rows] + step] = behind
        pos[rows] = behind
        step += 1
        rows = rows[counts[rows] > step]
    for row in rows:
        begin, end, first = int(pos[row]), int(ends[row]), int(firsts[row])
        bounds = _following(data[begin:end].tobytes(), int(counts[row]) - step)
        if bounds is None:
            return None
        places = np.array(bounds, np.int64).reshape(-1, 2) + begin
        found.starts[first + step : first + counts[row]] = places[:, 0]
        found.ends[first + step : first + counts[row]] = places[:, 1]
        pos[row] = places[-1, 1]
    return found if np.array_equal(pos, ends) else None


def _following(content: bytes, count: int) -> list[int] | None:
    """Return for each of `count` records where it begins and ends; None where they do not fit."""
    pos, size = 0, len(content)
    bounds: list[int] = []
    add = bounds.append
    for _ in repeat(None, count):
        if pos >= size:
            return None
        length = content[pos]
        pos += 1
        if length > 0x7F:
            length &= 0x7F
            shift = 7
            while True:
                if pos == size or shift > 28:
                    return None
                byte = content[pos]
                pos += 1
                length |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
        # Zigzag: odd is negative.
        if length & 1:
            return None
        add(pos)
        pos += length >> 1
        add(pos)
    return bounds if pos <= size else None

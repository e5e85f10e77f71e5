"""Looking for bytes in many stretches of a buffer at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from kvorum.spark.columnar.varints import Flags, Ints


def have_one_of(content: bytes, starts: Ints, ends: Ints, needles: Collection[bytes]) -> Flags:
    """Return which of the stretches `content[starts[i]:ends[i]]` have one of the needles in them.

    Stretches are in ascending order, and none overlaps another.
    """
    found = np.full(len(starts), b"" in needles)
    if not len(starts):
        return found
    for needle in needles:
        if not needle:
            continue
        places = np.fromiter(_places(content, needle), np.int64)
        indexes = np.searchsorted(starts, places, "right") - 1
        # A place may be before all stretches, between two, or in two that follow each other.
        is_within = (indexes >= 0) & (places + len(needle) <= ends[indexes])
        found[indexes[is_within]] = True
    return found


def _places(content: bytes, needle: bytes) -> Iterator[int]:
    place = content.find(needle)
    while place >= 0:
        yield place
        place = content.find(needle, place + 1)

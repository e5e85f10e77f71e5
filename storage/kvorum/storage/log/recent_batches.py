"""The places of the batches that were appended last, which are found without reading the file."""

from array import array
from bisect import bisect_right
from typing import Final, NamedTuple

KEPT_MAX: Final = 512
"""The number of batches from which on the older half is forgotten: 8 KiB for each log."""


class BatchPlace(NamedTuple):
    """The position of a batch in its file, and its size in bytes."""

    position: int
    size: int


class _Ends(NamedTuple):
    """The ends of batches: the offset after the last record, the position after the last byte."""

    next_offsets: "array[int]"
    positions: "array[int]"


class RecentBatches:
    """The last batches of a segment, in order. One thread adds to them, any thread looks."""

    def __init__(self, base_offset: int) -> None:
        self._ends = _Ends(array("q", (base_offset,)), array("q", (0,)))

    def add(self, *, next_offset: int, end: int) -> None:
        """Note a batch that was appended."""
        ends = self._ends
        # One that looks meanwhile finds a position for each offset.
        ends.positions.append(end)
        ends.next_offsets.append(next_offset)
        if len(ends.positions) > KEPT_MAX:
            half = KEPT_MAX // 2
            self._ends = _Ends(ends.next_offsets[half:], ends.positions[half:])

    def forget(self) -> None:
        """Forget all: the segment was cut or sealed, or its file was made by another process."""
        self._ends = _Ends(array("q"), array("q"))

    def holding(self, offset: int) -> BatchPlace | None:
        """Return the first batch that ends at `offset` or after it; None if it is not known."""
        ends = self._ends
        slot = bisect_right(ends.next_offsets, offset)
        if slot == 0 or slot >= len(ends.next_offsets):
            return None
        begin = ends.positions[slot - 1]
        return BatchPlace(begin, ends.positions[slot] - begin)

    def position_of(self, end_offset: int) -> int | None:
        """Return where the first batch begins that reaches `end_offset`, or the last one ends.

        None if that is not known.
        """
        ends = self._ends
        slot = bisect_right(ends.next_offsets, end_offset)
        return ends.positions[slot - 1] if slot > 0 else None

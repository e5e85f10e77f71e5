"""The segments that a cleaner joins into one, so that compaction leaves no ever smaller ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kvorum.storage.log.segment import RELATIVE_OFFSET_MAX, Segment


def group_segments(
    segments: Sequence[Segment], *, size_max: int, index_size_max: int, end_offset: int
) -> list[list[Segment]]:
    """Return the segments in groups, in order; each group becomes one segment.

    A group's .log files take at most `size_max` bytes, its offset indexes and its time indexes at
    most `index_size_max` each, unless it is of one segment. Its offsets fit the relative offsets of
    an index (KAFKA-6264); an empty segment counts for no offset (KAFKA-12889). `end_offset` is
    where the last segment ends at most.
    """
    bounds = [after.base_offset for _, after in pairwise(segments)] + [end_offset]
    groups: list[list[Segment]] = []
    sums = [0, 0, 0]
    for segment, bound in zip(segments, bounds, strict=True):
        sizes = (segment.size, *segment.index_sizes)
        totals = [one + other for one, other in zip(sums, sizes, strict=True)]
        fits = totals[0] <= size_max and max(totals[1:]) <= index_size_max
        if groups and fits and _is_in_reach(groups[-1][0], segment, bound):
            groups[-1].append(segment)
            sums = totals
        else:
            groups.append([segment])
            sums = list(sizes)
    return groups


def _is_in_reach(first: Segment, segment: Segment, bound: int) -> bool:
    return segment.size == 0 or bound - 1 - first.base_offset <= RELATIVE_OFFSET_MAX

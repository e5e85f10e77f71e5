"""The segments of a log as a cleaner takes them: in groups to be joined, and batch by batch.

Segments are joined, so that compaction leaves no ever smaller ones. Batches are read with all their
bytes. Messages of formats 0 and 1 are batches of format 2 to the cleaner, and become such, as in
Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from kvorum.storage.files import disk_errors
from kvorum.storage.log.segment import RELATIVE_OFFSET_MAX, Segment
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.compacted_batch import converted
from kvorum.wire.records.compression import STORED_UNPACKED_BYTES_MAX
from kvorum.wire.records.legacy import Entry, LegacyMessage, read_entries

CHUNK_BYTES: Final = 1024 * 1024


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


def read_segment(segment: Segment, position: int = 0) -> Iterator[list[RecordBatch]]:
    """Yield the batches from the one that begins at `position` on, as many as one read covers.

    Checksums are verified: what is written again gets a right one, and would hide the damage.
    Raises CorruptLogError.
    """
    size = segment.size
    while position < size:
        entries = _entries_at(segment, position, min(CHUNK_BYTES, size - position))
        if not entries:
            entries = _entries_at(segment, position, size - position)
        if not entries:
            raise segment.damage("the last batch is cut off", position)
        try:
            yield [
                converted(entry, STORED_UNPACKED_BYTES_MAX)
                if isinstance(entry, LegacyMessage)
                else entry
                for entry in entries
            ]
        except CorruptBatchError as error:
            raise segment.damage(str(error), position) from error
        position += sum(entry.size for entry in entries)


def _entries_at(segment: Segment, position: int, size: int) -> list[Entry]:
    """Return the whole batches among `size` bytes."""
    with disk_errors(segment.path, "reading"):
        data = segment.file.read_at(position, size)
    try:
        entries = list(read_entries(data, is_cut_allowed=True))
        for entry in entries:
            entry.verify()
    except CorruptBatchError as error:
        raise segment.damage(str(error), position) from error
    return entries

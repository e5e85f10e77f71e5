"""The batches of a segment with all their bytes, as a cleaner reads them.

Messages of formats 0 and 1 are batches of format 2 to the cleaner, and become such, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvorum.storage.files import disk_errors
from kvorum.storage.log.segment import Segment
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.compacted_batch import converted
from kvorum.wire.records.compression import STORED_UNPACKED_BYTES_MAX
from kvorum.wire.records.legacy import Entry, LegacyMessage, read_entries

CHUNK_BYTES: Final = 1024 * 1024


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

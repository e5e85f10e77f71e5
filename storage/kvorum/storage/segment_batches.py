"""The batches of a segment with all their bytes, as a cleaner reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvorum.storage.files import disk_errors
from kvorum.storage.segment import Segment
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records import RecordBatch, read_batches

CHUNK_BYTES: Final = 1024 * 1024


def read_segment(segment: Segment, position: int = 0) -> Iterator[list[RecordBatch]]:
    """Yield the batches from the one that begins at `position` on, as many as one read covers.

    Checksums are verified: what is written anew gets a right one, and would hide the damage. Raises
    CorruptLogError.
    """
    size = segment.size
    while position < size:
        batches = _batches_at(segment, position, min(CHUNK_BYTES, size - position))
        if not batches:
            batches = _batches_at(segment, position, size - position)
        if not batches:
            raise segment.damage("the last batch is cut off", position)
        yield batches
        position += sum(batch.size for batch in batches)


def _batches_at(segment: Segment, position: int, size: int) -> list[RecordBatch]:
    """Return the whole batches among `size` bytes."""
    with disk_errors(segment.path, "reading"):
        data = segment.file.read_at(position, size)
    try:
        batches = list(read_batches(data, is_cut_allowed=True))
        for batch in batches:
            batch.verify()
    except CorruptBatchError as error:
        raise segment.damage(str(error), position) from error
    return batches

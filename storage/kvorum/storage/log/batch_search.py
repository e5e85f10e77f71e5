"""The search for a batch by its offset: from the entry of the offset index on, header by header.

The checksum of a batch does not cover its base offset, so that every batch on the way must begin
where the one before it ended. What does not is a BadBatchError.
"""

from collections.abc import Iterator
from typing import Final

from kvorum.storage.files import ReadableFile
from kvorum.storage.log.batch_header import BatchHeader, continues, header_at
from kvorum.storage.log.indexes import OffsetIndex
from kvorum.storage.log.segment_scan import BadBatchError

_LOOKUP_READ_BYTES: Final = 16 * 1024
"""The size of a read: two entries of the index are some 4 KiB apart."""


def find_batch(
    file: ReadableFile, index: OffsetIndex, offset: int, *, size: int, may_have_gaps: bool
) -> tuple[int, BatchHeader]:
    """Return position and header of the batch that holds `offset`, which the first `size` bytes do.

    In a log with gaps the batch may begin above `offset`.
    """
    position, indexed = index.entry_before(offset)
    expected = index.base_offset
    for place, header in headers_from(file, position, end=size):
        if indexed is not None:
            reach = header.last_offset - header.base_offset
            expected = indexed - reach
            is_next = header.base_offset == expected
            indexed = None
        else:
            is_next = continues(header.base_offset, expected, may_have_gaps=may_have_gaps)
        if not is_next:
            problem = f"a batch of offset {header.base_offset} lies where {expected} belongs"
            raise BadBatchError(place, problem)
        if header.last_offset >= offset:
            return place, header
        position = place + header.size
        expected = header.next_offset
    raise BadBatchError(position, f"no batch holds offset {offset}, which the log has")


def find_end_before(file: ReadableFile, index: OffsetIndex, offset: int, *, size: int) -> int:
    """Return where the batches end that lie wholly below `offset`."""
    position, _ = index.entry_before(offset - 1)
    end_offset = index.base_offset
    for _, header in headers_from(file, position, end=size):
        if header.last_offset >= offset:
            break
        end_offset = header.next_offset
    return end_offset


def headers_from(
    file: ReadableFile, position: int, *, end: int
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch from `position` up to `end`."""
    while position < end:
        block = memoryview(file.read_at(position, min(_LOOKUP_READ_BYTES, end - position)))
        used = 0
        while (header := header_at(block, used)) is not None:
            problem = header.problem()
            if problem is not None:
                raise BadBatchError(position + used, problem)
            yield position + used, header
            used += header.size
        if used == 0:
            return
        position += used


def whole_batches_size(data: memoryview, position: int, *, end_offset: int) -> int:
    """Return the size of the whole batches below `end_offset` in `data`, read from `position`."""
    used = 0
    while (header := header_at(data, used)) is not None:
        problem = header.problem()
        if problem is not None:
            raise BadBatchError(position + used, problem)
        if header.next_offset > end_offset or used + header.size > len(data):
            break
        used += header.size
    return used

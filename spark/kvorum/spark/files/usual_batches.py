"""The batches at the beginning of a buffer that obviously keep all rules of a log without gaps.

Nearly all batches of a segment are such: sound, of the next offset, and of the epoch before or of a
later one that the batch behind confirms. They are judged together, by column. Nothing is said
here of a batch for which that is not so: `range_reader` looks at it with each of its rules.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from kvorum.spark.columnar.batch_block import BatchBlock, headers_at
from kvorum.spark.columnar.varints import Flags, Ints
from kvorum.spark.files.batch_places import BASE_OFFSET_MAX
from kvorum.storage.log.batch_header import (
    CRC_START,
    HEADER_SIZE,
    LENGTH_FIELD_END,
    MAGIC,
)
from kvorum.wire.checksums import crc32c

# Base offset, length, epoch and format, checksum.
_LENGTH_AND_CRC: Final = Struct(">8xi5xI")
_LENGTH_MIN: Final = HEADER_SIZE - LENGTH_FIELD_END
_NO_EPOCH_BEHIND: Final = -1


class Expected(NamedTuple):
    """The next batch by the ones before it, and the last one by the rest of the file.

    `end_offset` is None where no file follows.
    """

    offset: int
    epoch: int
    end_offset: int | None


def usual_batches(data: memoryview, position: int, expected: Expected) -> BatchBlock:
    """Return the first batches of `data` up to one that is not usual, or not whole.

    `data` is what is at the byte `position` of the file.
    """
    starts = _sound_starts(data)
    block = BatchBlock(data, starts, starts + position, headers_at(data, starts))
    is_usual = _are_usual(block, expected) if block.batch_count else np.ones(0, np.bool_)
    return block if is_usual.all() else block.between(0, int(is_usual.argmin()))


def _sound_starts(data: memoryview) -> Ints:
    """Return where batches begin, up to the first that is cut off or has a wrong checksum."""
    starts: list[int] = []
    size, start = len(data), 0
    read = _LENGTH_AND_CRC.unpack_from
    # This is all that is done for each batch alone, so it is short and calls little.
    while start + HEADER_SIZE <= size:
        length, crc = read(data, start)
        end = start + length + LENGTH_FIELD_END
        if length < _LENGTH_MIN or end > size or crc32c(data[start + CRC_START : end]) != crc:
            break
        starts.append(start)
        start = end
    return np.array(starts, np.int64)


def _are_usual(block: BatchBlock, expected: Expected) -> Flags:
    """Return which batches keep all rules, if those before them do."""
    offsets, last_offsets = block.column("base_offset"), block.last_offsets
    next_offsets = np.concatenate(([expected.offset], last_offsets[:-1] + 1))
    is_usual: Flags = (offsets == next_offsets) & (offsets >= 0) & (offsets <= BASE_OFFSET_MAX)
    is_usual &= block.column("last_offset_delta") >= 0
    is_usual &= block.column("record_count") >= 0
    is_usual &= block.column("magic") == MAGIC
    if expected.end_offset is not None:
        is_usual &= last_offsets < expected.end_offset
    is_usual &= _have_usual_epochs(block.column("partition_leader_epoch"), expected.epoch)
    return is_usual


def _have_usual_epochs(epochs: Ints, epoch: int) -> Flags:
    before = np.concatenate(([epoch], epochs[:-1]))
    behind = np.concatenate((epochs[1:], [_NO_EPOCH_BEHIND]))
    are_usual: Flags = (epochs == before) | ((epochs > before) & (epochs <= behind))
    return are_usual

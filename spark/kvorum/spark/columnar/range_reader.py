"""Reading a range of a file: its sound batches in order, and what is wrong between them.

`entry_reader` reads batches one by one, by all rules. Nearly all batches of a segment without gaps
obviously keep them: they are sound, of the next offset, and of the epoch before or of a later one
that the next batch confirms. These are judged together here, by column, and read in blocks that are
large enough for the price of a column to be small.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias, cast

import numpy as np

from kvorum.log_files.batch_places import BASE_OFFSET_MAX
from kvorum.log_files.batch_rules import LogTraits
from kvorum.log_files.damage import Damage, missing_before, not_read
from kvorum.log_files.entry_reader import BatchOrDamage, EntryOrDamage, EntryReader
from kvorum.log_files.file_systems import BLOCK_BYTES, Files, FileWindow, files_at
from kvorum.log_files.find import FileKind
from kvorum.log_files.ranges import FileRange
from kvorum.spark.columnar.batch_block import BatchBlock, block_of, headers_at, joined
from kvorum.spark.columnar.field_places import Flags, Ints
from kvorum.storage.log.batch_header import (
    CRC_START,
    HEADER_SIZE,
    LENGTH_FIELD_END,
    MAGIC,
    read_header,
)
from kvorum.wire.checksums import crc32c
from kvorum.wire.records import RecordBatch

BlockOrDamage: TypeAlias = BatchBlock | RecordBatch | Damage
"""Batches of which many were read together, or one that was looked at alone, or damage."""
USUAL_BYTES_MIN: Final = 4 * 1024
"""The bytes that are read at once after an unusual batch: the next one may be unusual too."""
USUAL_BYTES_MAX: Final = BLOCK_BYTES // 3
"""Enough for the price of a column to be small, and few enough for a column to stay in caches."""
USUAL_BYTES_GROWTH: Final = 16
"""The factor by which more than usual is read next: so little is verified in vain."""
BLOCK_BYTES_MIN: Final = 1024 * 1024
"""A block of this size is handed on as it is; smaller ones are joined."""
JOINED_BYTES_MIN: Final = 4 * 1024 * 1024
"""The size of joined blocks, unless damage or the end follows them."""
# Base offset, length, epoch and format, checksum.
_LENGTH_AND_CRC: Final = Struct(">8xi5xI")
_LENGTH_MIN: Final = HEADER_SIZE - LENGTH_FIELD_END
_NO_NEXT_EPOCH: Final = -1


def read_range(
    unit: FileRange, *, file_system_options: Mapping[str, Any] | None = None
) -> Iterator[BatchOrDamage]:
    """Yield the sound batches of a range in order, and a `Damage` where some are missing.

    The positions of batches are those in the file. Nothing is raised for bytes that are damaged,
    nor for a file that is missing or cannot be read.
    """
    for item in read_blocks(unit, file_system_options=file_system_options):
        if isinstance(item, BatchBlock):
            yield from item.batches()
        else:
            yield item


def read_blocks(
    unit: FileRange, *, file_system_options: Mapping[str, Any] | None = None
) -> Iterator[BlockOrDamage]:
    """Yield what `read_range` yields, usual batches in blocks."""
    traits = LogTraits(has_gaps=False, with_legacy=False)
    # Without the old formats there are batches only.
    return cast("Iterator[BlockOrDamage]", _read(unit, traits, file_system_options or {}))


def read_entries(
    unit: FileRange, *, has_gaps: bool, file_system_options: Mapping[str, Any]
) -> Iterator[EntryOrDamage]:
    """Yield what `read_range` yields, and messages of the formats 0 and 1 among the batches."""
    for item in _read(unit, LogTraits(has_gaps=has_gaps, with_legacy=True), file_system_options):
        if isinstance(item, BatchBlock):
            yield from item.batches()
        else:
            yield item


def _read(
    unit: FileRange, traits: LogTraits, file_system_options: Mapping[str, Any]
) -> Iterator[BatchBlock | EntryOrDamage]:
    before = missing_before(unit)
    if before is not None:
        yield before
    try:
        files = files_at(unit.file.path, file_system_options)
        file = files.open(unit.file.path)
    except OSError as error:
        yield not_read(unit, error, unit.start.position, unit.start.offset)
        return
    with closing(file):
        reader = _RangeReader(unit, FileWindow(file, end=unit.file.size), files, traits)
        try:
            yield from reader.run()
        except OSError as error:
            yield not_read(unit, error, reader.position, reader.rules.offset)


class _RangeReader(EntryReader[BatchBlock]):
    """One pass over a range, in which usual batches are read in blocks."""

    def __init__(
        self, unit: FileRange, window: FileWindow, files: Files, traits: LogTraits
    ) -> None:
        super().__init__(unit, window, files, traits)
        self._is_plain_segment = unit.file.kind is FileKind.SEGMENT and not traits.has_gaps

    def _usual_batches(self) -> Iterator[BatchBlock]:
        """Yield batches for as long as they obviously keep all rules, many at once.

        The rules are looked at one by one for a batch of which that is not so.
        """
        is_usual = self._is_plain_segment and not self.rules.is_foreign and self._trouble is None
        if self.position == 0 or not is_usual:
            return
        rules, size_max = self.rules, USUAL_BYTES_MIN
        while self.position + HEADER_SIZE <= rules.end:
            expected = Expected(rules.offset, rules.epoch, self._unit.end_offset)
            block = usual_batches(self._whole_batches(size_max), self.position, expected)
            if not block.batch_count:
                return
            size = int(block.ends[-1])
            self.position += size
            rules.offset = int(block.last_offsets[-1]) + 1
            rules.epoch = int(block.column("partition_leader_epoch")[-1])
            yield block
            size_max = max(min(size * USUAL_BYTES_GROWTH, USUAL_BYTES_MAX), USUAL_BYTES_MIN)

    def _whole_batches(self, size_max: int) -> memoryview:
        """Return about `size_max` bytes at the position, or one whole batch where that is larger.

        What is in memory is divided without a small rest. A batch that is larger than a block is
        not held in memory for its checksum.
        """
        position = self.position
        data = self._window.block_at(position, HEADER_SIZE)
        if len(data) >= HEADER_SIZE:
            size = read_header(data).size
            if len(data) < size <= BLOCK_BYTES:
                data = self._window.block_at(position, size)
            size_max = max(size_max, size)
        data = data[: self.rules.end - position]
        return data if len(data) < 2 * size_max else data[:size_max]


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
    epochs = block.column("partition_leader_epoch")
    before = np.concatenate(([expected.epoch], epochs[:-1]))
    after = np.concatenate((epochs[1:], [_NO_NEXT_EPOCH]))
    is_usual &= (epochs == before) | ((epochs > before) & (epochs <= after))
    return is_usual


def chosen_blocks(
    items: Iterable[BlockOrDamage], choose: Callable[[BatchBlock], Flags]
) -> Iterator[BatchBlock | Damage]:
    """Yield the batches that `choose` keeps, in blocks, and all damage, in their order.

    Only the bytes of batches that are kept wait in memory for others to be joined with.
    """
    small: list[BatchBlock] = []
    for item in _in_blocks(items):
        if isinstance(item, Damage):
            yield from _joined(small)
            small = []
            yield item
            continue
        block = item.where(choose(item))
        if block.size >= BLOCK_BYTES_MIN:
            yield from _joined(small)
            small = []
            yield block
        elif block.batch_count:
            small.append(block.copied())
            if sum(len(each.data) for each in small) >= JOINED_BYTES_MIN:
                yield from _joined(small)
                small = []
    yield from _joined(small)


def _joined(blocks: Sequence[BatchBlock]) -> Iterator[BatchBlock]:
    """Yield blocks as one, if there are any."""
    if blocks:
        yield joined(blocks)


def _in_blocks(items: Iterable[BlockOrDamage]) -> Iterator[BatchBlock | Damage]:
    """Yield the same batches and damage in the same order, all batches in blocks."""
    single: list[RecordBatch] = []
    size = 0
    for item in items:
        if single and (not isinstance(item, RecordBatch) or size >= BLOCK_BYTES_MIN):
            yield block_of(single)
            single, size = [], 0
        if isinstance(item, RecordBatch):
            single.append(item)
            size += item.size
        else:
            yield item
    if single:
        yield block_of(single)

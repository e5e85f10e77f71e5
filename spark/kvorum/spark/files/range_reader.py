"""Reading a range of a file: its sound batches in order, and what is wrong between them.

`entry_reader` has the rules, and reads batches one by one. Nearly all of them obviously keep the
rules: these are read here, many at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

from kvorum.spark.columnar.batch_block import BatchBlock
from kvorum.spark.files.damage import Damage
from kvorum.spark.files.entry_reader import EntryOrDamage, EntryReader, LogTraits
from kvorum.spark.files.file_systems import Files, files_at
from kvorum.spark.files.file_window import BLOCK_BYTES, FileWindow
from kvorum.spark.files.log_file import FileKind
from kvorum.spark.files.range_damage import missing_before, not_read
from kvorum.spark.files.ranges import FileRange
from kvorum.spark.files.usual_batches import Expected, usual_batches
from kvorum.storage.log.batch_header import HEADER_SIZE, read_header
from kvorum.wire.records import RecordBatch

BatchOrDamage: TypeAlias = RecordBatch | Damage
BlockOrDamage: TypeAlias = BatchBlock | RecordBatch | Damage
"""Batches of which many were read together, or one that was looked at alone, or damage."""
USUAL_BYTES_MIN: Final = 4 * 1024
"""The bytes that are read at once after an unusual batch: the next one may be unusual too."""
USUAL_BYTES_MAX: Final = BLOCK_BYTES // 3
"""Enough for the price of a column to be small, and few enough for a column to stay in caches."""
USUAL_BYTES_GROWTH: Final = 16
"""The factor by which more than usual is read next: so little is verified in vain."""


def read_range(
    unit: FileRange,
    *,
    has_gaps: bool = False,
    file_system_options: Mapping[str, Any] | None = None,
) -> Iterator[BatchOrDamage]:
    """Yield the sound batches of a range in order, and a `Damage` where some are missing.

    The positions of batches are those in the file. Nothing is raised for bytes that are damaged,
    nor for a file that is missing or cannot be read.
    """
    for item in read_blocks(unit, has_gaps=has_gaps, file_system_options=file_system_options):
        if isinstance(item, BatchBlock):
            yield from item.batches()
        else:
            yield item


def read_blocks(
    unit: FileRange,
    *,
    has_gaps: bool = False,
    file_system_options: Mapping[str, Any] | None = None,
) -> Iterator[BlockOrDamage]:
    """Yield what `read_range` yields, usual batches in blocks."""
    traits = LogTraits(has_gaps=has_gaps, with_legacy=False)
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
    reader = _RangeReader(unit, FileWindow(file, end=unit.file.size), files, traits)
    try:
        yield from reader.run()
    except OSError as error:
        yield not_read(unit, error, reader.position, reader.place.offset)
    finally:
        file.close()


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
        is_usual = (
            self._is_plain_segment and not self._snapshot.is_foreign and self._trouble is None
        )
        if self.position == 0 or not is_usual:
            return
        size_max = USUAL_BYTES_MIN
        while self.position + HEADER_SIZE <= self._end:
            expected = Expected(self.place.offset, self.place.epoch, self._unit.end_offset)
            block = usual_batches(self._whole_batches(size_max), self.position, expected)
            if not block.batch_count:
                return
            size = int(block.ends[-1])
            self.position += size
            self.place.offset = int(block.last_offsets[-1]) + 1
            self.place.epoch = int(block.column("partition_leader_epoch")[-1])
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
        data = data[: self._end - position]
        return data if len(data) < 2 * size_max else data[:size_max]

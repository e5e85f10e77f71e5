"""Reading a range of a file: its sound batches in order, and what is wrong between them.

`place_rules` says which offset and epoch belong where, `snapshot_rules` which records a file begins
and ends with.

Whatever breaks a rule is damage. Reading goes on at the next sound batch that keeps the rules, and
one value says from which offset to which nothing could be read. The end of a log's last segment
may be torn, because a node is writing: that ends the reading and is not damage.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from kvorum.spark.columnar.batch_block import BatchBlock
from kvorum.spark.files.batch_places import (
    Bounds,
    EntryHeader,
    entry_header_at,
    header_at,
    header_problem,
    is_sound,
    next_sound_batch,
)
from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.files.file_systems import Files, files_at
from kvorum.spark.files.file_window import BLOCK_BYTES, FileWindow
from kvorum.spark.files.legacy_header import LegacyHeader, whole_message
from kvorum.spark.files.log_file import FileKind
from kvorum.spark.files.neighbour import NO_NEIGHBOUR, Neighbour, neighbour_behind, neighbour_of
from kvorum.spark.files.place_rules import PlaceRules
from kvorum.spark.files.range_damage import Trouble, damage_of, missing_before, not_read
from kvorum.spark.files.ranges import FileRange
from kvorum.spark.files.snapshot_rules import SnapshotRules
from kvorum.spark.files.torn_end import end_looks_torn
from kvorum.spark.files.usual_batches import Expected, usual_batches
from kvorum.storage.batch_header import HEADER_SIZE, read_header
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.legacy import Entry

BatchOrDamage: TypeAlias = RecordBatch | Damage
BlockOrDamage: TypeAlias = BatchBlock | RecordBatch | Damage
"""Batches of which many were read together, or one that was looked at alone, or damage."""
EntryOrDamage: TypeAlias = Entry | Damage

USUAL_BYTES_MIN: Final = 4 * 1024
"""How much is read at once behind a batch that is not usual: the next one may not be so either."""
USUAL_BYTES_MAX: Final = BLOCK_BYTES // 3
"""Enough for the price of a column to be small, and few enough for a column to stay in caches."""
USUAL_BYTES_GROWTH: Final = 16
"""How many times as much as was usual is read next: so little is verified in vain."""

_NO_HEADER: Final = "too few bytes for the header of a batch"


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
    traits = _LogTraits(has_gaps=has_gaps, with_legacy=False)
    # Without the old formats there are batches only.
    return cast("Iterator[BlockOrDamage]", _read(unit, traits, file_system_options or {}))


def read_entries(
    unit: FileRange, *, has_gaps: bool, file_system_options: Mapping[str, Any]
) -> Iterator[EntryOrDamage]:
    """Yield what `read_range` yields, and messages of the formats 0 and 1 among the batches."""
    for item in _read(unit, _LogTraits(has_gaps=has_gaps, with_legacy=True), file_system_options):
        if isinstance(item, BatchBlock):
            yield from item.batches()
        else:
            yield item


class _LogTraits(NamedTuple):
    """Whether offsets may be missing between batches, and whether there may be old traits."""

    has_gaps: bool
    with_legacy: bool


def _read(
    unit: FileRange, traits: _LogTraits, file_system_options: Mapping[str, Any]
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


class _RangeReader:
    """One pass over a range; `position` and `place` are where the next sound batch belongs."""

    def __init__(
        self, unit: FileRange, window: FileWindow, files: Files, traits: _LogTraits
    ) -> None:
        self.position = unit.start.position
        self.place = PlaceRules(unit, has_gaps=traits.has_gaps)
        self._unit = unit
        self._window = window
        self._files = files
        self._with_legacy = traits.with_legacy
        self._is_plain_segment = unit.file.kind is FileKind.SEGMENT and not traits.has_gaps
        self._snapshot = SnapshotRules(unit.file.kind, has_end=unit.is_last)
        self._end = min(unit.end, window.end)
        self._trouble: Trouble | None = None

    def run(self) -> Iterator[BatchBlock | EntryOrDamage]:
        """Yield batches and damage."""
        yield from self._usual_batches()
        header = self._header_at(self.position)
        while self.position < self._end:
            problem = self._problem_of_bytes(header)
            if problem is not None:
                if (yield from self._torn_tail(problem)):
                    return
                header = self._resume_behind(problem, header)
                continue
            assert header is not None
            entry = self._entry(header)
            position = self.position + header.size
            following = self._header_at(position) if position < self._end else None
            behind = self._neighbour(following, position)
            problem = self._problem_of_entry(header, entry, behind)
            if problem is None:
                yield from self._told(header.base_offset - 1)
                yield entry
                self.place.follow(header)
            else:
                self._note(problem)
            self.position = position
            yield from self._usual_batches()
            header = following if self.position == position else self._header_at(self.position)
        yield from self._at_end()

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

    def _header_at(self, position: int) -> EntryHeader | None:
        """Return the header at `position`; that of a whole old message says what it wraps."""
        if not self._with_legacy:
            return header_at(self._window, position)
        header = entry_header_at(self._window, position)
        if (
            not isinstance(header, LegacyHeader)
            or header_problem(header) is not None
            or position + header.size > self._end
            or not is_sound(self._window, position, header)
        ):
            return header
        return header.judged(self._window.at(position, header.size))

    def _problem_of_bytes(self, header: EntryHeader | None) -> str | None:
        """Return why no whole and sound batch begins at the position, or None."""
        if header is None:
            return _NO_HEADER
        problem = header_problem(header)
        if problem is not None:
            return problem
        if self.position + header.size > self._end:
            return f"a batch of {header.size} bytes is cut off after {self._end - self.position}"
        if not is_sound(self._window, self.position, header):
            return "the checksum of the batch does not match its bytes"
        return None

    def _entry(self, header: EntryHeader) -> Entry:
        data = self._window.at(self.position, header.size)
        if isinstance(header, LegacyHeader):
            return whole_message(data)._replace(position=self.position)
        return RecordBatch(*header, self.position, data)

    def _neighbour(self, following: EntryHeader | None, position: int) -> Neighbour:
        """Return what is known of the batch behind one that ends at `position`."""
        known = neighbour_of(following)
        if known is not NO_NEIGHBOUR or position < self._end:
            return known
        return neighbour_behind(self._unit, self._files)

    def _problem_of_entry(self, header: EntryHeader, entry: Entry, behind: Neighbour) -> str | None:
        """Return why a sound batch does not belong where it is, or None."""
        problem = self._snapshot.problem(header, self.position, entry.data)
        if problem is not None:
            return problem
        place = self.place
        place.begin_at(header)
        problem = place.problem(header, behind, is_behind_damage=self._trouble is not None)
        if problem is None:
            self._note(place.gap_before(header.base_offset))
        return problem

    def _note(self, reason: str | None) -> None:
        """Remember the first thing that is wrong since the last sound batch."""
        if self._trouble is None and reason is not None:
            self._trouble = Trouble(self.position, self.place.offset, reason)

    def _told(self, last: int | None) -> Iterator[Damage]:
        """Yield what was wrong; offsets up to `last` are missing because of it."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            yield damage_of(self._unit, DamageKind.DAMAGED, trouble, last)

    def _torn_tail(self, problem: str) -> Generator[Damage, None, bool]:
        """Yield the torn tail and return True, if the end of a log is not written yet."""
        if not self._unit.is_tail or self._trouble is not None:
            return False
        if self._next_sound(None) is not None or not end_looks_torn(
            self._window, self.position, self._end, with_legacy=self._with_legacy
        ):
            return False
        trouble = Trouble(self.position, self.place.offset, problem)
        yield damage_of(self._unit, DamageKind.TORN_TAIL, trouble, None)
        return True

    def _next_sound(self, header: EntryHeader | None) -> int | None:
        unit = self._unit
        bounds = Bounds(max(self.place.offset, 0), unit.end_offset)
        return next_sound_batch(
            self._window,
            self.position,
            header=header,
            bounds=bounds,
            end=self._end,
            with_legacy=self._with_legacy,
        )

    def _resume_behind(self, problem: str, header: EntryHeader | None) -> EntryHeader | None:
        """Move to the next sound batch, or to the end."""
        self._note(problem)
        found = self._next_sound(header)
        self.position = self._end if found is None else found
        return self._header_at(self.position)

    def _at_end(self) -> Iterator[Damage]:
        """Yield what is missing at the end of the range."""
        unit = self._unit
        if self._end < unit.end:
            self._note(f"the file ends after {self._end} of {unit.end} bytes")
        self._note(self.place.gap_at_end())
        self._note(self._snapshot.problem_at_end())
        last = None if unit.end_offset is None else unit.end_offset - 1
        yield from self._told(last)

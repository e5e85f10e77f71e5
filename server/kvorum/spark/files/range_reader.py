"""Reading a range of a file: its sound batches in order, and what is wrong between them.

A batch's checksum covers neither its offset nor its epoch, so both are compared with those of the
batches around it. For a log without gaps the rules are:

1. a batch begins where the one before it ended; the first where the file's name says;
2. its epoch is not lower than the one before it, and not higher than the one behind it;
3. it ends before the offset where the next range or the next segment begins;
4. where a batch begins too high, offsets are missing only if the batch behind continues it;
   otherwise its own offset is wrong, and its records are not handed out under wrong offsets;
5. the range ends at the offset where the next range or segment begins;
6. a snapshot begins with its header record, and ends with its footer record; where the first
   sound batch of a file is another one, or that of a segment is such, nothing of it is used.

In a log with gaps, which compaction makes, rules 1, 4 and 5 ask only that offsets ascend.

Messages of the formats 0 and 1 have no epochs; the rules on offsets are the same for them.

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
from kvorum.spark.files.legacy_header import LegacyHeader, message_looks_torn, whole_message
from kvorum.spark.files.log_file import FileKind
from kvorum.spark.files.ranges import UNKNOWN_OFFSET, FileRange
from kvorum.spark.files.snapshot_records import is_footer, is_of_other_kind
from kvorum.spark.files.usual_batches import Expected, usual_batches
from kvorum.storage.batch_header import HEADER_SIZE, BatchHeader, read_header
from kvorum.storage.torn_tail import looks_torn
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


class _Neighbour(NamedTuple):
    """Offset and epoch of the batch behind one that is judged; None where it is not known."""

    offset: int | None
    epoch: int | None


_NO_NEIGHBOUR: Final = _Neighbour(None, None)


class _Trouble(NamedTuple):
    """Where sound batches ended, and why; what is missing is known at the next sound one."""

    position: int
    first_offset: int
    reason: str


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
    rules = _Rules(has_gaps=has_gaps, with_legacy=False)
    # Without the old formats there are batches only.
    return cast("Iterator[BlockOrDamage]", _read(unit, rules, file_system_options or {}))


def read_entries(
    unit: FileRange, *, has_gaps: bool, file_system_options: Mapping[str, Any]
) -> Iterator[EntryOrDamage]:
    """Yield what `read_range` yields, and messages of the formats 0 and 1 among the batches."""
    for item in _read(unit, _Rules(has_gaps=has_gaps, with_legacy=True), file_system_options):
        if isinstance(item, BatchBlock):
            yield from item.batches()
        else:
            yield item


class _Rules(NamedTuple):
    """Whether offsets may be missing between batches, and whether there may be old formats."""

    has_gaps: bool
    with_legacy: bool


def _read(
    unit: FileRange, rules: _Rules, file_system_options: Mapping[str, Any]
) -> Iterator[BatchBlock | EntryOrDamage]:
    if unit.missing_from is not None:
        reason = "the log begins here, and no snapshot covers the offsets before"
        last = unit.start.offset - 1
        yield _damage(unit, DamageKind.DAMAGED, _Trouble(0, unit.missing_from, reason), last)
    try:
        files = files_at(unit.file.path, file_system_options)
        file = files.open(unit.file.path)
    except OSError as error:
        yield _not_read(unit, error, unit.start.position, unit.start.offset)
        return
    reader = _RangeReader(unit, FileWindow(file, end=unit.file.size), files, rules)
    try:
        yield from reader.run()
    except OSError as error:
        yield _not_read(unit, error, reader.position, reader.offset)
    finally:
        file.close()


def _not_read(unit: FileRange, error: OSError, position: int, offset: int) -> Damage:
    last = None if unit.end_offset is None else unit.end_offset - 1
    if isinstance(error, FileNotFoundError):
        reason = "the file was there when the work was planned, and is gone"
        return _damage(unit, DamageKind.DELETED, _Trouble(position, offset, reason), last)
    reason = error.strerror or str(error)
    return _damage(unit, DamageKind.UNREADABLE, _Trouble(position, offset, reason), last)


def _damage(unit: FileRange, kind: DamageKind, trouble: _Trouble, last: int | None) -> Damage:
    return Damage(
        kind, unit.file.path, trouble.position, max(trouble.first_offset, 0), last, trouble.reason
    )


class _RangeReader:
    """One pass over a range; `position` and `offset` are where the next sound batch belongs."""

    def __init__(self, unit: FileRange, window: FileWindow, files: Files, rules: _Rules) -> None:
        self.position = unit.start.position
        self.offset = unit.start.offset
        self._unit = unit
        self._window = window
        self._files = files
        self._has_gaps, self._with_legacy = rules
        self._is_plain_segment = unit.file.kind is FileKind.SEGMENT and not rules.has_gaps
        self._epoch = unit.start.epoch
        self._end = min(unit.end, window.end)
        self._trouble: _Trouble | None = None
        self._is_complete_snapshot = False
        self._is_foreign = False

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
            problem = self._problem_of_snapshot(header, entry) or self._problem_of_place(
                header, self._neighbour(following, position)
            )
            if problem is None:
                yield from self._settle(header.base_offset)
                yield entry
                self.offset = header.next_offset
                if isinstance(header, BatchHeader):
                    self._epoch = header.leader_epoch
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
        is_usual = self._is_plain_segment and not self._is_foreign and self._trouble is None
        if self.position == 0 or not is_usual:
            return
        size_max = USUAL_BYTES_MIN
        while self.position + HEADER_SIZE <= self._end:
            expected = Expected(self.offset, self._epoch, self._unit.end_offset)
            block = usual_batches(self._whole_batches(size_max), self.position, expected)
            if not block.batch_count:
                return
            size = int(block.ends[-1])
            self.position += size
            self.offset = int(block.last_offsets[-1]) + 1
            self._epoch = int(block.column("partition_leader_epoch")[-1])
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

    def _neighbour(self, following: EntryHeader | None, position: int) -> _Neighbour:
        """Return what is known of the batch behind one that ends at `position`."""
        if following is not None and header_problem(following) is None:
            is_batch = isinstance(following, BatchHeader)
            return _Neighbour(following.base_offset, following.leader_epoch if is_batch else None)
        if position < self._end:
            return _NO_NEIGHBOUR
        return _Neighbour(self._unit.end_offset, self._epoch_behind())

    def _epoch_behind(self) -> int | None:
        """Return the epoch of the batch behind the range, in this file or in the next segment."""
        unit = self._unit
        if unit.next_path is None:
            return unit.end_epoch
        try:
            file = self._files.open(unit.next_path)
        except OSError:
            return None
        try:
            header = header_at(FileWindow(file, end=file.size, block_bytes=1), 0)
        except OSError:
            return None
        finally:
            file.close()
        if header is None or header_problem(header) or header.base_offset != unit.end_offset:
            return None
        return header.leader_epoch

    def _problem_of_place(self, header: EntryHeader, behind: _Neighbour) -> str | None:
        """Return why a sound batch does not belong where it is, or None."""
        first, end = header.base_offset, self._unit.end_offset
        if self.offset == UNKNOWN_OFFSET:
            self.offset = first
        if first < self.offset:
            return f"offset {first} follows {self.offset - 1}"
        if end is not None and header.next_offset > end:
            return f"offset {header.last_offset} is in the file that ends before {end}"
        if first > self.offset:
            if not self._has_gaps and not self._is_confirmed(header, behind):
                return f"offset {first} where {self.offset} belongs"
            self._note_gap(first)
        if behind.offset is not None and self._has_gaps and behind.offset < header.next_offset:
            return f"offset {header.last_offset} is followed by {behind.offset}"
        if isinstance(header, LegacyHeader):
            return None
        return self._problem_of_epoch(header.leader_epoch, behind.epoch)

    def _is_confirmed(self, header: EntryHeader, behind: _Neighbour) -> bool:
        """Return whether the offset of a batch that begins too high can be believed.

        Behind damage that is known it is enough that nothing speaks against it.
        """
        if behind.offset is None:
            return self._trouble is not None
        return behind.offset == header.next_offset

    def _problem_of_epoch(self, epoch: int, behind: int | None) -> str | None:
        if epoch < self._epoch:
            return f"epoch {epoch} follows {self._epoch}"
        if behind is not None and self._epoch <= behind < epoch:
            return f"epoch {epoch} is followed by {behind}"
        return None

    def _problem_of_snapshot(self, header: EntryHeader, batch: Entry) -> str | None:
        """Check the records that a snapshot, and no segment, begins and ends with."""
        if isinstance(header, LegacyHeader):
            return None
        is_segment = self._unit.file.kind is FileKind.SEGMENT
        if self.position == 0:
            self._is_foreign = is_of_other_kind(self._unit.file.kind, header, batch.data)
        if self._is_foreign:
            return (
                "the file is a snapshot"
                if is_segment
                else "no header record of a snapshot comes first"
            )
        if is_segment:
            return None
        if self._is_complete_snapshot:
            return "a batch behind the snapshot's footer record"
        self._is_complete_snapshot = is_footer(header, batch.data)
        return None

    def _note(self, reason: str) -> None:
        """Remember the first thing that is wrong since the last sound batch."""
        if self._trouble is None:
            self._trouble = _Trouble(self.position, self.offset, reason)

    def _note_gap(self, first: int) -> None:
        if not self._has_gaps:
            self._note(f"the batch behind offset {self.offset - 1} begins at {first}")

    def _settle(self, offset: int) -> Iterator[Damage]:
        """Yield what was wrong up to a sound batch that begins at `offset`."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            yield _damage(self._unit, DamageKind.DAMAGED, trouble, offset - 1)

    def _torn_tail(self, problem: str) -> Generator[Damage, None, bool]:
        """Yield the torn tail and return True, if the end of a log is not written yet."""
        if not self._unit.is_tail or self._trouble is not None:
            return False
        if self._next_sound(None) is not None or not self._looks_torn():
            return False
        trouble = _Trouble(self.position, self.offset, problem)
        yield _damage(self._unit, DamageKind.TORN_TAIL, trouble, None)
        return True

    def _looks_torn(self) -> bool:
        size = self._end - self.position
        if size <= BLOCK_BYTES:
            rest = self._window.at(self.position, size)
            of_message = message_looks_torn(rest) if self._with_legacy else None
            return looks_torn(rest) if of_message is None else of_message
        # A block that was never written ends in zeros; of a cut batch the header is enough.
        header = header_at(self._window, self.position)
        if header is not None and header_problem(header) is None:
            return header.size > size
        return looks_torn(self._window.at(self._end - BLOCK_BYTES, BLOCK_BYTES))

    def _next_sound(self, header: EntryHeader | None) -> int | None:
        unit = self._unit
        bounds = Bounds(max(self.offset, 0), unit.end_offset)
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
        end_offset = unit.end_offset
        if end_offset is not None and self.offset < end_offset and not self._has_gaps:
            place = "the next segment" if unit.is_last else "the next batch"
            self._note(f"offset {self.offset - 1} is the last before {place}, of {end_offset}")
        is_snapshot = unit.file.kind is not FileKind.SEGMENT
        if is_snapshot and unit.is_last and not self._is_complete_snapshot:
            self._note("the snapshot does not end with its footer record")
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            last = None if end_offset is None else end_offset - 1
            yield _damage(unit, DamageKind.DAMAGED, trouble, last)

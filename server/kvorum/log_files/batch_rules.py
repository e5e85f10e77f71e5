"""The rules by which the headers and the entries of a range are judged.

A header has to be possible, and the bytes that it promises whole and sound. Its checksum covers
neither the offset nor the epoch of a batch, so both must fit those of its neighbours. In a log
without gaps these rules hold:

1. a batch begins where the one before it ended; the first where the file's name says;
2. its epoch is not lower than the one before it, and not higher than the one after it;
3. it ends before the offset where the next range or the next segment begins;
4. where a batch begins too high, offsets are missing only if the batch after it continues it;
   otherwise its own offset is wrong, and its records are not handed out under wrong offsets;
5. the range ends at the offset where the next range or segment begins;
6. a snapshot begins with its header record and ends with its footer record, and no segment begins
   with one. Nothing of a file is used whose first sound batch belongs into a file of another kind.

In a log with gaps, which compaction makes, rules 1, 4 and 5 ask only that offsets ascend.

Messages of the formats 0 and 1 have no epochs; the rules on offsets are the same for them.
"""

from contextlib import closing
from typing import Final, NamedTuple

from kvorum.log_files.batch_places import (
    EntryHeader,
    control_type,
    entry_header_at,
    header_at,
    header_problem,
    is_of_other_kind,
    is_sound,
)
from kvorum.log_files.file_systems import Files, FileWindow
from kvorum.log_files.find import FileKind
from kvorum.log_files.legacy_header import LegacyHeader
from kvorum.log_files.ranges import UNKNOWN_OFFSET, FileRange
from kvorum.storage.log.batch_header import BatchHeader
from kvorum.storage.metadata_log.control_batch import SNAPSHOT_FOOTER
from kvorum.wire.records.legacy import Entry


class LogTraits(NamedTuple):
    """Whether offsets may be missing between batches, and whether there may be old formats."""

    has_gaps: bool
    with_legacy: bool


class SeenHeader(NamedTuple):
    """The header that was read at a place, and why it cannot be that of an entry."""

    header: EntryHeader | None
    problem: str | None


END_OF_RANGE: Final = SeenHeader(None, "the range ends here")
_NO_HEADER: Final = SeenHeader(None, "too few bytes for the header of a batch")


class BatchRules:
    """The rules of one range, which ends at byte `end` of what can be read.

    `offset` and `epoch` are those that the entries so far ask of the next one. `is_foreign` says
    that the file is of another kind, as its first batch tells.
    """

    def __init__(
        self, unit: FileRange, window: FileWindow, files: Files, traits: LogTraits
    ) -> None:
        self.end = min(unit.end, window.end)
        self.offset = unit.start.offset
        self.epoch = unit.start.epoch
        self.is_foreign = False
        self._unit = unit
        self._window = window
        self._files = files
        self._traits = traits
        self._is_segment = unit.file.kind is FileKind.SEGMENT
        self._is_complete = False

    def header_at(self, position: int) -> SeenHeader:
        """Return the header at `position`; that of a whole old message says what it wraps."""
        if position >= self.end:
            return END_OF_RANGE
        read = entry_header_at if self._traits.with_legacy else header_at
        header = read(self._window, position)
        if header is None:
            return _NO_HEADER
        problem = header_problem(header)
        if isinstance(header, LegacyHeader) and problem is None:
            header = self._unpacked(header, position)
            problem = header.flaw
        return SeenHeader(header, problem)

    def _unpacked(self, header: LegacyHeader, position: int) -> LegacyHeader:
        end = position + header.size
        if end > self.end or not is_sound(self._window, position, header):
            return header
        return header.judged(self._window.at(position, header.size))

    def problem_of_header(self, seen: SeenHeader, position: int) -> str | None:
        """Return why no whole and sound entry begins at `position`, or None."""
        header, problem = seen
        if header is None or problem is not None:
            return problem
        if position + header.size > self.end:
            return f"a batch of {header.size} bytes is cut off after {self.end - position}"
        if not is_sound(self._window, position, header):
            return "the checksum of the batch does not match its bytes"
        return None

    def problem_of_entry(
        self, header: EntryHeader, entry: Entry, following: SeenHeader, *, is_after_damage: bool
    ) -> str | None:
        """Return why a sound entry does not belong where it is, or None.

        `following` is the header after it. After damage that is known an offset that is too high
        can be believed if nothing speaks against it.
        """
        if entry.position == 0 or self.is_foreign or not self._is_segment:
            problem = self._problem_of_kind(header, entry)
            if problem is not None:
                return problem
        if self.offset == UNKNOWN_OFFSET:
            self.offset = header.base_offset
        next_offset: int | None = None
        next_epoch: int | None = None
        if following is END_OF_RANGE:
            next_offset, next_epoch = self._unit.end_offset, self._epoch_after_range()
        elif following.header is not None and following.problem is None:
            next_offset = following.header.base_offset
            if isinstance(following.header, BatchHeader):
                next_epoch = following.header.leader_epoch
        return self._problem_of_offset(
            header, next_offset, is_after_damage=is_after_damage
        ) or self._problem_of_epoch(header, next_epoch)

    def gap_before(self, header: EntryHeader) -> str | None:
        """Return what is missing before an entry that belongs here but begins too high, or None."""
        if self._traits.has_gaps:
            return None
        return f"the batch behind offset {self.offset - 1} begins at {header.base_offset}"

    def follow(self, header: EntryHeader) -> None:
        """Ask of the next entry what this one says."""
        self.offset = header.next_offset
        if isinstance(header, BatchHeader):
            self.epoch = header.leader_epoch

    def problem_at_end(self) -> str | None:
        """Return what is missing after the last entry of the range, or None."""
        unit, end_offset = self._unit, self._unit.end_offset
        if self.end < unit.end:
            return f"the file ends after {self.end} of {unit.end} bytes"
        if end_offset is not None and self.offset < end_offset and not self._traits.has_gaps:
            place = "the next segment" if unit.is_last else "the next batch"
            return f"offset {self.offset - 1} is the last before {place}, of {end_offset}"
        if not self._is_segment and unit.is_last and not self._is_complete:
            return "the snapshot does not end with its footer record"
        return None

    def _problem_of_kind(self, header: EntryHeader, entry: Entry) -> str | None:
        if isinstance(header, LegacyHeader):
            return None
        if entry.position == 0:
            self.is_foreign = is_of_other_kind(self._unit.file.kind, header, entry.data)
        if self._is_segment:
            return "the file is a snapshot" if self.is_foreign else None
        if self.is_foreign:
            return "no header record of a snapshot comes first"
        if self._is_complete:
            return "a batch behind the snapshot's footer record"
        self._is_complete = control_type(header, entry.data) == SNAPSHOT_FOOTER
        return None

    def _problem_of_offset(
        self, header: EntryHeader, next_offset: int | None, *, is_after_damage: bool
    ) -> str | None:
        first, end, after = header.base_offset, self._unit.end_offset, header.next_offset
        if first < self.offset:
            return f"offset {first} follows {self.offset - 1}"
        if end is not None and after > end:
            return f"offset {header.last_offset} is in the file that ends before {end}"
        if self._traits.has_gaps:
            if next_offset is not None and next_offset < after:
                return f"offset {header.last_offset} is followed by {next_offset}"
        elif first > self.offset:
            is_confirmed = is_after_damage if next_offset is None else next_offset == after
            return None if is_confirmed else f"offset {first} where {self.offset} belongs"
        return None

    def _problem_of_epoch(self, header: EntryHeader, next_epoch: int | None) -> str | None:
        if isinstance(header, LegacyHeader):
            return None
        epoch = header.leader_epoch
        if epoch < self.epoch:
            return f"epoch {epoch} follows {self.epoch}"
        if next_epoch is not None and self.epoch <= next_epoch < epoch:
            return f"epoch {epoch} is followed by {next_epoch}"
        return None

    def _epoch_after_range(self) -> int | None:
        unit = self._unit
        if unit.next_path is None:
            return unit.end_epoch
        try:
            with closing(self._files.open(unit.next_path)) as file:
                header = header_at(FileWindow(file, end=file.size, block_bytes=1), 0)
        except OSError:
            return None
        if header is None or header_problem(header) or header.base_offset != unit.end_offset:
            return None
        return header.leader_epoch

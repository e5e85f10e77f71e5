"""Reading the entries of a range one by one: what is sound, and what is wrong between.

`place_rules` says which offset and epoch belong where, `snapshot_rules` which records a file begins
and ends with. Whatever breaks a rule is damage. Reading goes on at the next sound entry that keeps
the rules. The end of a log's last segment may be torn, because a node is writing: that ends the
reading and is not damage.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

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
from kvorum.spark.files.file_systems import Files
from kvorum.spark.files.file_window import FileWindow
from kvorum.spark.files.legacy_header import LegacyHeader, whole_message
from kvorum.spark.files.neighbour import NO_NEIGHBOUR, Neighbour, neighbour_behind, neighbour_of
from kvorum.spark.files.place_rules import PlaceRules
from kvorum.spark.files.range_damage import Trouble, damage_of
from kvorum.spark.files.ranges import FileRange
from kvorum.spark.files.snapshot_rules import SnapshotRules
from kvorum.spark.files.torn_end import end_looks_torn
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.legacy import Entry

EntryOrDamage: TypeAlias = Entry | Damage

_NO_HEADER: Final = "too few bytes for the header of a batch"
_Many = TypeVar("_Many")


class LogTraits(NamedTuple):
    """Whether offsets may be missing between batches, and whether there may be old formats."""

    has_gaps: bool
    with_legacy: bool


class EntryReader(Generic[_Many]):
    """One pass over a range; `position` and `place` are where the next sound batch belongs."""

    def __init__(
        self, unit: FileRange, window: FileWindow, files: Files, traits: LogTraits
    ) -> None:
        self.position: int = unit.start.position
        self.place = PlaceRules(unit, has_gaps=traits.has_gaps)
        self._unit = unit
        self._window = window
        self._files = files
        self._with_legacy = traits.with_legacy
        self._snapshot = SnapshotRules(unit.file.kind, has_end=unit.is_last)
        self._end = min(unit.end, window.end)
        self._trouble: Trouble | None = None

    def run(self) -> Iterator[_Many | EntryOrDamage]:
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

    def _usual_batches(self) -> Iterator[_Many]:
        """Yield batches that obviously keep all rules, many at once: none here."""
        return iter(())

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

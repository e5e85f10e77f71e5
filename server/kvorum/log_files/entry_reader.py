"""Reading the entries of a range one by one: what is sound, and what is wrong between.

`BatchRules` judges each header and each entry; whatever breaks a rule is damage. Reading goes on at
the next sound entry that keeps the rules. The end of a log's last segment may be torn, because a
node is writing: that ends the reading and is not damage.
"""

from collections.abc import Iterator
from typing import Generic, TypeAlias, TypeVar

from kvorum.log_files.batch_places import Bounds, EntryHeader, end_looks_torn, next_sound_batch
from kvorum.log_files.batch_rules import END_OF_RANGE, BatchRules, LogTraits
from kvorum.log_files.damage import Damage, DamageKind, Trouble, damage_of
from kvorum.log_files.file_systems import Files, FileWindow
from kvorum.log_files.legacy_header import LegacyHeader, whole_message
from kvorum.log_files.ranges import FileRange
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.legacy import Entry

EntryOrDamage: TypeAlias = Entry | Damage
BatchOrDamage: TypeAlias = RecordBatch | Damage

_Many = TypeVar("_Many")


class EntryReader(Generic[_Many]):
    """One pass over a range; the next sound entry belongs at `position`, as `rules` say."""

    def __init__(
        self, unit: FileRange, window: FileWindow, files: Files, traits: LogTraits
    ) -> None:
        self.position: int = unit.start.position
        self.rules = BatchRules(unit, window, files, traits)
        self._unit = unit
        self._window = window
        self._with_legacy = traits.with_legacy
        self._trouble: Trouble | None = None

    def run(self) -> Iterator[_Many | EntryOrDamage]:
        """Yield entries and damage, in the order of the file."""
        rules = self.rules
        yield from self._usual_batches()
        seen = rules.header_at(self.position)
        while seen is not END_OF_RANGE:
            header = seen.header
            problem = rules.problem_of_header(seen, self.position)
            if header is None or problem is not None:
                is_torn = self._end_is_torn()
                self._note(problem)
                if is_torn:
                    yield self._damage(None, DamageKind.TORN_TAIL)
                    return
                found = self._next_sound(header)
                self.position = rules.end if found is None else found
                seen = rules.header_at(self.position)
                continue
            entry = self._entry(header)
            end = self.position + entry.size
            seen = rules.header_at(end)
            problem = rules.problem_of_entry(
                header, entry, seen, is_after_damage=self._trouble is not None
            )
            if problem is not None:
                self._note(problem)
            else:
                if header.base_offset > rules.offset:
                    self._note(rules.gap_before(header))
                if self._trouble is not None:
                    yield self._damage(header.base_offset - 1)
                yield entry
                rules.follow(header)
            self.position = end
            yield from self._usual_batches()
            if self.position != end:
                seen = rules.header_at(self.position)
        self._note(rules.problem_at_end())
        if self._trouble is not None:
            end_offset = self._unit.end_offset
            yield self._damage(None if end_offset is None else end_offset - 1)

    def _usual_batches(self) -> Iterator[_Many]:
        """Yield batches that obviously keep all rules, many at once: none here."""
        return iter(())

    def _entry(self, header: EntryHeader) -> Entry:
        data = self._window.at(self.position, header.size)
        if isinstance(header, LegacyHeader):
            return whole_message(data)._replace(position=self.position)
        return RecordBatch(*header, self.position, data)

    def _note(self, reason: str | None) -> None:
        """Remember the first thing that is wrong since the last sound batch."""
        if self._trouble is None and reason is not None:
            self._trouble = Trouble(self.position, self.rules.offset, reason)

    def _damage(self, last: int | None, kind: DamageKind = DamageKind.DAMAGED) -> Damage:
        """Return what was noted; offsets up to `last` are missing because of it."""
        trouble, self._trouble = self._trouble, None
        assert trouble is not None
        return damage_of(self._unit, kind, trouble, last)

    def _end_is_torn(self) -> bool:
        """Return whether the position is where the end of a log is not written yet."""
        if not self._unit.is_tail or self._trouble is not None:
            return False
        return self._next_sound(None) is None and end_looks_torn(
            self._window, self.position, self.rules.end, with_legacy=self._with_legacy
        )

    def _next_sound(self, header: EntryHeader | None) -> int | None:
        return next_sound_batch(
            self._window,
            self.position,
            header=header,
            bounds=Bounds(max(self.rules.offset, 0), self._unit.end_offset),
            end=self.rules.end,
            with_legacy=self._with_legacy,
        )

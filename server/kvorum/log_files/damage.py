"""Damage as a value: what is wrong, where, and which offsets are missing because of it."""

from enum import Enum
from typing import NamedTuple

from kvorum.log_files.ranges import FileRange


class DamageKind(Enum):
    """The events that make a difference to a reader."""

    DAMAGED = "damaged"
    TORN_TAIL = "torn tail"
    DELETED = "deleted"
    UNREADABLE = "unreadable"


class Damage(NamedTuple):
    """A place in a file whose records could not be read.

    `first_offset` is the offset that was expected at byte `position`. The offsets up to
    `last_offset` are missing: none where that is lower than `first_offset`, and all that follow in
    this file where it is None.
    """

    kind: DamageKind
    path: str
    position: int
    first_offset: int
    last_offset: int | None
    reason: str

    @property
    def text(self) -> str:
        """The damage in one line, without the path and the first offset."""
        return f"{self.kind.value} at byte {self.position}: {self.reason}; {self._missing}"

    @property
    def _missing(self) -> str:
        first, last = self.first_offset, self.last_offset
        if last is None:
            return f"what follows offset {first - 1} in this file is missing"
        if last < first:
            return "no offset is missing"
        if last == first:
            return f"offset {first} is missing"
        return f"offsets {first} to {last} are missing"


class Trouble(NamedTuple):
    """The end of sound batches, and why; the missing part is known at the next sound one."""

    position: int
    first_offset: int
    reason: str


def damage_of(unit: FileRange, kind: DamageKind, trouble: Trouble, last: int | None) -> Damage:
    """Return the damage; offsets up to `last` are missing, and all that follow where it is None."""
    return Damage(
        kind, unit.file.path, trouble.position, max(trouble.first_offset, 0), last, trouble.reason
    )


def missing_before(unit: FileRange) -> Damage | None:
    """Return the damage of a log that begins here with no snapshot of what was before."""
    if unit.missing_from is None:
        return None
    reason = "the log begins here, and no snapshot covers the offsets before"
    trouble = Trouble(0, unit.missing_from, reason)
    return damage_of(unit, DamageKind.DAMAGED, trouble, unit.start.offset - 1)


def not_read(unit: FileRange, error: OSError, position: int, offset: int) -> Damage:
    """Return the damage of a file that is gone, or that cannot be read from a byte on."""
    last = None if unit.end_offset is None else unit.end_offset - 1
    kind, reason = DamageKind.UNREADABLE, error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        kind = DamageKind.DELETED
        reason = "the file was there when the work was planned, and is gone"
    return damage_of(unit, kind, Trouble(position, offset, reason), last)

"""Damage of a range of a file: what to say where a part, or all, of it could not be read."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.files.ranges import FileRange


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
    if isinstance(error, FileNotFoundError):
        reason = "the file was there when the work was planned, and is gone"
        return damage_of(unit, DamageKind.DELETED, Trouble(position, offset, reason), last)
    reason = error.strerror or str(error)
    return damage_of(unit, DamageKind.UNREADABLE, Trouble(position, offset, reason), last)

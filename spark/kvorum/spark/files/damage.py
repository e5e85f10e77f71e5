"""Damage as a value: what is wrong, where, and which offsets are missing because of it.

A query treats it in one of the three modes of Spark's own readers of files.
"""

import logging
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from kvorum.spark.errors import DamagedFileError, OptionError
from kvorum.spark.files.ranges import FileRange

T = TypeVar("T")
_LOG: Final = logging.getLogger(__name__)


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


class Mode(Enum):
    """Modes, by the value of the option `mode`.

    FAILFAST raises `DamagedFileError`, and logs a torn tail. PERMISSIVE makes every damage a row.
    DROPMALFORMED logs every damage, and at the end how many there were.
    """

    FAILFAST = "failfast"
    PERMISSIVE = "permissive"
    DROPMALFORMED = "dropmalformed"


def parse_mode(text: str) -> Mode:
    """Return the mode of this name, in any case; `OptionError` for another name."""
    try:
        return Mode(text.strip().lower())
    except ValueError:
        known = ", ".join(mode.value for mode in Mode)
        raise OptionError(f"option 'mode' is {text!r}: it is one of {known}") from None


def admit(items: Iterable[T | Damage], mode: Mode) -> Iterator[T | Damage]:
    """Yield the items, and the damage among them only where the mode makes rows of it."""
    dropped = 0
    path = ""
    for item in items:
        if not isinstance(item, Damage) or mode is Mode.PERMISSIVE:
            yield item
            continue
        if mode is Mode.FAILFAST and item.kind is not DamageKind.TORN_TAIL:
            raise DamagedFileError(file=item.path, offset=item.first_offset, reason=item.text)
        _LOG.warning("%s: offset %d: %s", item.path, item.first_offset, item.text)
        dropped, path = dropped + 1, item.path
    if dropped and mode is Mode.DROPMALFORMED:
        _LOG.warning("%s: %d damaged places were left out", path, dropped)

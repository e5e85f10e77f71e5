"""Damage as a value: what is wrong, where, and which offsets are missing because of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


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
        return (
            f"offset {first} is missing"
            if last == first
            else f"offsets {first} to {last} are missing"
        )

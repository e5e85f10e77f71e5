"""The gaps between the offsets of a log's records."""

from __future__ import annotations

from dataclasses import dataclass, field

BEFORE_FIRST = -1


@dataclass(slots=True)
class OffsetGaps:
    """The pairs of offsets that are neighbours in a log, or in a part of it, but not consecutive.

    `last` is the offset of the last record so far: `BEFORE_FIRST` before the first of a log, None
    before the first of a part, whose neighbour is in another one.
    """

    last: int | None = BEFORE_FIRST
    pairs: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    first_of_part: int | None = None

    def note(self, first: int, last: int) -> None:
        """Go on with records whose offsets are consecutive, from `first` to `last`."""
        if self.last is None:
            self.first_of_part = first
        elif first != self.last + 1:
            self.pairs.append((self.last, first))
        self.last = last

    def go_on(self, part: OffsetGaps) -> None:
        """Go on with what was noted of the next part."""
        if part.first_of_part is None or part.last is None:
            return
        self.note(part.first_of_part, part.last)
        self.pairs += part.pairs

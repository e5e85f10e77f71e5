"""The gaps between the batches of a segment: a note on each of the first, and one on the others."""

from pathlib import Path
from typing import Final

from kvorum.inspection.log_check.findings import Findings, Rule, Severity

GAPS_NOTED_MAX: Final = 10
"""A segment that was compacted may have a gap before each of its batches, millions of them."""


class GapNotes:
    """The gaps of one segment, in the order of its batches."""

    def __init__(self, file: Path, findings: Findings) -> None:
        self._file = file
        self._findings = findings
        self._noted = 0
        self._others = 0
        self._other_offsets = 0
        self._first_other: tuple[int, int] | None = None

    def add(self, *, first_offset: int, next_offset: int, position: int) -> None:
        """Take in that the offsets up to `next_offset` are missing before byte `position`."""
        if self._noted == GAPS_NOTED_MAX:
            self._others += 1
            self._other_offsets += next_offset - first_offset
            self._first_other = self._first_other or (position, first_offset)
            return
        self._noted += 1
        self._note(
            f"offsets {first_offset} to {next_offset - 1} are not in the log",
            (position, first_offset),
        )

    def at_end(self) -> None:
        """Add the note on the gaps that have none of their own."""
        if self._first_other is not None:
            gaps = "1 gap" if self._others == 1 else f"{self._others} gaps"
            problem = f"{gaps} more, of {self._other_offsets} offsets in all, from here on"
            self._note(problem, self._first_other)

    def _note(self, problem: str, place: tuple[int, int]) -> None:
        position, offset = place
        self._findings.add(
            Rule.GAP,
            self._file,
            problem,
            position=position,
            offset=offset,
            severity=Severity.NOTE,
        )

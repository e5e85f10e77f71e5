"""A large log dumped by several processes, which print its parts in turns.

All go through the same parts, and each dumps every `count`-th of them. When it has one ready it
waits for its turn, prints, and gives the turn to the next process; the last one gives it back to
the first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import NamedTuple

from kvorum.cli.dump.errors import UNREADABLE
from kvorum.cli.dump.log_dump import LogDump
from kvorum.cli.dump.log_parts import Part, log_parts
from kvorum.cli.dump.offset_gaps import OffsetGaps
from kvorum.cli.dump.output import texts_of_lines
from kvorum.inspection.mapped_file import MappedFile


class Turn(NamedTuple):
    """The messages between the processes.

    `gaps` has what was found since the first process had the turn. `failed` is a part that could
    not be printed: all leave the log.
    """

    gaps: OffsetGaps
    failed: Part | None = None


@dataclass(frozen=True, slots=True)
class Seat:
    """A process's place: its number of `count`, and the pipes from and to its neighbours."""

    number: int
    count: int
    before: Connection
    after: Connection

    @property
    def is_first(self) -> bool:
        """Whether the turn begins and ends here."""
        return self.number == 0

    def close(self) -> None:
        """Close the pipes here."""
        self.before.close()
        self.after.close()


def dump_in_turns(dump: LogDump, log: MappedFile, seat: Seat, part_bytes: int) -> Part | None:
    """Print a log's parts together with the other processes; return the part that failed.

    What was before that part is printed. The first process has the gaps in `dump` then. Raises
    EOFError when the process before this one has ended, OSError when the one after it has.
    """
    turn = Turn(OffsetGaps())
    for part in _own_parts(log_parts(dump.shown(log), part_bytes), seat):
        part_dump = replace(dump, gaps=OffsetGaps(last=None))
        texts = _texts(part_dump, log, part)
        log.release(part.end)
        if part.begin or not seat.is_first:
            turn = _next_turn(dump, seat)
        if turn.failed is None:
            turn = _taken(turn, part_dump.gaps, texts, part)
        if turn.failed is not None and seat.is_first:
            return turn.failed
        seat.after.send(turn)
        if turn.failed is not None:
            return turn.failed
    return _next_turn(dump, seat).failed if seat.is_first else None


def _own_parts(parts: Iterable[Part], seat: Seat) -> Iterator[Part]:
    """Yield the parts of one process; an empty one at the end if others have one more.

    They are looked for as they are needed: a file that is mapped takes memory once it is read.
    """
    count, end = 0, 0
    for part in parts:
        if count % seat.count == seat.number:
            yield part
        count, end = count + 1, part.end
    if 0 < count % seat.count <= seat.number:
        yield Part(end, end)


def _next_turn(dump: LogDump, seat: Seat) -> Turn:
    """Wait for the turn; the first process keeps the gaps that were found since it had it."""
    turn: Turn = seat.before.recv()
    if not seat.is_first:
        return turn
    dump.gaps.pairs += turn.gaps.pairs
    dump.gaps.last = turn.gaps.last
    return turn._replace(gaps=OffsetGaps(turn.gaps.last))


def _texts(dump: LogDump, log: MappedFile, part: Part) -> list[str] | None:
    """Return the lines of a part, None if it cannot be read."""
    try:
        return list(texts_of_lines(dump.part_lines(log, part)))
    except UNREADABLE:
        return None


def _taken(turn: Turn, gaps: OffsetGaps, texts: list[str] | None, part: Part) -> Turn:
    """Print a part; return the turn of the next process."""
    if texts is None:
        return turn._replace(failed=part)
    try:
        sys.stdout.writelines(texts)
        sys.stdout.flush()
    except OSError:
        return turn._replace(failed=part)
    turn.gaps.go_on(gaps)
    return turn

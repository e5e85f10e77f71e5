"""The processes that dump a large log, and print its parts in turns.

All go through the same parts, and each dumps every `count`-th of them. When it has one ready it
waits for its turn, prints, and gives the turn to the next process; the last one gives it back to
the first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from kvorum.cli.broken_pipe import silence_output
from kvorum.cli.dump.decoders import KeyValueDecoder
from kvorum.cli.dump.errors import UNREADABLE
from kvorum.cli.dump.log_dump import PART_BYTES, LogDump, OffsetGaps, Part, log_parts
from kvorum.cli.dump.output import print_lines, texts_of_lines
from kvorum.inspection.reading import MappedFile

WORTH_PROCESSES_BYTES: Final = 1 << 21
"""Smaller logs are dumped by one process."""


class LostProcessError(Exception):
    """One of the processes that dump a log has ended: it was killed."""


def print_log(dump: LogDump, log: MappedFile) -> None:
    """Print the lines of a log; `dump` has its gaps then.

    Functions of the user's, as decoders, are only called by this process. Raises OSError,
    `LostProcessError`, and what a dump that is made by this process alone raises.
    """
    is_small = len(dump.shown(log)) < WORTH_PROCESSES_BYTES
    calls_users = isinstance(dump.decoder, KeyValueDecoder) and not dump.decoder.is_kafkas
    # Other processes print on the standard output that this one was started with.
    if is_small or calls_users or sys.stdout is not sys.__stdout__:
        print_lines(dump.lines(log))
    else:
        print_log_by(usable_cores(), dump, log)


def print_log_by(
    count: int, dump: LogDump, log: MappedFile, *, part_bytes: int = PART_BYTES
) -> None:
    """Print a log as `print_log` does, by so many processes, part by part."""
    if count == 1:
        print_lines(dump.lines(log))
        return
    sys.stdout.flush()
    failed = _printed_by(count, dump, log, part_bytes)
    if failed is not None:
        print_lines(dump.part_lines(log, failed))


def _printed_by(count: int, dump: LogDump, log: MappedFile, part_bytes: int) -> Part | None:
    """Start the other processes, and return the part that could not be printed."""
    # A copy of this process has all that it needs, and no start.
    context = get_context("fork")
    ring = [context.Pipe(duplex=False) for _ in range(count)]
    first, *others = [
        Seat(number, count, before, ring[(number + 1) % count][1])
        for number, (before, _) in enumerate(ring)
    ]
    ends = [end for pipe in ring for end in pipe]
    # Ctrl-C is for this process; in the others it stays blocked.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    processes = [
        context.Process(target=_take_part, args=(dump, log, seat, ends, part_bytes), daemon=True)
        for seat in others
    ]
    for process in processes:
        process.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    _close_others(ends, first)
    try:
        return dump_in_turns(dump, log, first, part_bytes)
    except (EOFError, ConnectionError):
        raise LostProcessError from None
    finally:
        first.close()
        for process in processes:
            # It has printed all of its parts, or waits for a reader that reads no more.
            process.terminate()
            process.join()


def _take_part(
    dump: LogDump, log: MappedFile, seat: Seat, ends: list[Connection], part_bytes: int
) -> None:
    """Dump the parts of one process, until there are no more or another process has ended."""
    _close_others(ends, seat)
    with suppress(EOFError, OSError):
        dump_in_turns(dump, log, seat, part_bytes)
    silence_output()


def _close_others(ends: list[Connection], seat: Seat) -> None:
    """Close what belongs to other processes: else it would not be known that one has ended."""
    for end in ends:
        if end not in (seat.before, seat.after):
            end.close()


def usable_cores() -> int:
    """Return on how many cores the system lets this process run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
        if seat.is_first:
            dump.report(part.end)
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

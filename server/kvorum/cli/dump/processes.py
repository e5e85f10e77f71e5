"""The processes that dump a large log."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final

from kvorum.cli.broken_pipe import silence_output
from kvorum.cli.dump.decoders import KeyValueDecoder
from kvorum.cli.dump.log_dump import LogDump
from kvorum.cli.dump.log_parts import PART_BYTES, Part
from kvorum.cli.dump.output import print_lines
from kvorum.cli.dump.turns import Seat, dump_in_turns
from kvorum.inspection.mapped_file import MappedFile

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
    # Other processes print on the standard output that this one was started with.
    if is_small or _calls_users(dump) or sys.stdout is not sys.__stdout__:
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


def _calls_users(dump: LogDump) -> bool:
    return isinstance(dump.decoder, KeyValueDecoder) and not dump.decoder.is_kafkas


def usable_cores() -> int:
    """Return on how many cores the system lets this process run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

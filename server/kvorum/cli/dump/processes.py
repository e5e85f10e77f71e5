"""The processes that dump the logs of a command line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final

from kvorum.cli.broken_pipe import silence_output
from kvorum.cli.dump.arguments import parse_words
from kvorum.cli.dump.decoders import KeyValueDecoder
from kvorum.cli.dump.java_file import JavaFile
from kvorum.cli.dump.log_dump import LogDump
from kvorum.cli.dump.log_parts import PART_BYTES, Part
from kvorum.cli.dump.options import DumpOptions
from kvorum.cli.dump.output import print_lines
from kvorum.cli.dump.turns import Seat, dump_in_turns
from kvorum.cli.usable_cores import usable_cores
from kvorum.inspection.mapped_file import MappedFile

WORTH_PROCESSES_BYTES: Final = 1 << 24
"""Smaller logs are dumped before other processes have started."""


class LostProcessError(Exception):
    """One of the processes that dump a log has ended: it was killed."""


class DumpProcesses(AbstractContextManager["DumpProcesses"]):
    """The first of `count` processes, and the others, which start with the first large log."""

    def __init__(self, words: Sequence[str], count: int, part_bytes: int = PART_BYTES) -> None:
        self._words = tuple(words)
        self._count = count
        self._part_bytes = part_bytes
        self._seat: Seat | None = None
        self._others: list[Connection] = []

    @classmethod
    def for_files(cls, words: Sequence[str], files: Iterable[JavaFile]) -> DumpProcesses:
        """Return the processes that the files of the command line `words` are worth."""
        logs = (each.path for each in files if each.suffix in {".log", ".checkpoint"})
        size = sum(path.stat().st_size for path in logs if path.is_file())
        # The others print on the standard output that the process was started with.
        is_worth_it = size >= WORTH_PROCESSES_BYTES and sys.stdout is sys.__stdout__
        return cls(words, usable_cores() if is_worth_it else 1)

    def print_log(self, dump: LogDump, file: JavaFile) -> None:
        """Print the lines of a log; `dump` has its gaps then.

        Functions of the user's, as decoders, are only called by this process. Raises OSError,
        `LostProcessError`, and what a dump that is made by this process alone raises.
        """
        log = MappedFile(file.path)
        is_small = len(dump.shown(log)) <= self._part_bytes
        if self._count == 1 or is_small or _calls_users(dump):
            print_lines(dump.lines(log))
            return
        sys.stdout.flush()
        failed = self._dump_in_turns(dump, file, log)
        if failed is not None:
            print_lines(dump.part_lines(log, failed))

    def _dump_in_turns(self, dump: LogDump, file: JavaFile, log: MappedFile) -> Part | None:
        try:
            if self._seat is None:
                self._seat = self._start()
            for other in self._others:
                other.send(file.absolute)
            return dump_in_turns(dump, log, self._seat, self._part_bytes)
        except (EOFError, ConnectionError):
            raise LostProcessError from None

    def _start(self) -> Seat:
        """Start the other processes, around a ring of pipes."""
        context = get_context("spawn")
        ring = [context.Pipe(duplex=False) for _ in range(self._count)]
        seats = [
            Seat(number, self._count, before, ring[(number + 1) % self._count][1])
            for number, (before, _) in enumerate(ring)
        ]
        for seat in seats[1:]:
            files, other = context.Pipe(duplex=False)
            arguments = (self._words, files, seat, self._part_bytes)
            context.Process(target=_take_part, args=arguments, daemon=True).start()
            self._others.append(other)
            # Only when nobody else has an end of a pipe is it known that its process has ended.
            files.close()
            seat.close()
        return seats[0]

    def __exit__(self, *_: object) -> None:
        """Let the other processes end."""
        for other in self._others:
            other.close()
        if self._seat is not None:
            self._seat.close()


def _calls_users(dump: LogDump) -> bool:
    return isinstance(dump.decoder, KeyValueDecoder) and not dump.decoder.is_kafkas


def _take_part(words: tuple[str, ...], files: Connection, seat: Seat, part_bytes: int) -> None:
    """Dump parts of each log that is named, until the first process has no more, or has ended."""
    # Ctrl-C is for the first process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = DumpOptions(parse_words(words))
    with suppress(EOFError, OSError):
        while True:
            file = JavaFile(files.recv())
            log = MappedFile(file.path)
            dump_in_turns(options.log_dump(file.name), log, seat, part_bytes)
    silence_output()

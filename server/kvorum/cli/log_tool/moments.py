"""Options that name a moment of a metadata log; the progress of a command, on the console."""

import argparse
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from kvorum.cli.shared_arguments import time_ms
from kvorum.inspection.metadata_log import Moment
from kvorum.inspection.reading import Tell, no_report

FIRST_S: Final = 1.0
"""Commands that are done by then print no line."""
PAUSE_S: Final = 0.5
_MIB: Final = 1 << 20
_CLEARED: Final = "\r\033[K"


def offset(text: str) -> int:
    """Return an offset; ArgumentTypeError for other text."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not an offset")
    return int(text)


def add_moment(parser: argparse.ArgumentParser) -> None:
    """Add the options for one moment; without them it is the end of the log."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--at",
        type=offset,
        metavar="OFFSET",
        help="as of the record at this offset (default: the last one)",
    )
    group.add_argument(
        "--time",
        type=time_ms,
        metavar="TIME",
        help="as of this time, in ISO 8601, UTC where it names no zone",
    )


def moment_of(arguments: argparse.Namespace) -> Moment:
    """Return the moment that the options name."""
    return Moment(arguments.at, arguments.time)


def warn(text: str) -> None:
    """Print what was left out."""
    print(f"kvorum log: {text}", file=sys.stderr)


class Progress:
    """The bytes that were read so far, in the order in which files are read."""

    def __init__(self, console: TextIO, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._next = clock() + FIRST_S
        self._file: Path | None = None
        self._position = 0
        self._before = 0
        self._is_shown = False

    def tell(self, file: Path, position: int) -> None:
        """Take in how far a file has been read, and write it down from time to time."""
        if file != self._file:
            self._before += self._position
            self._file = file
        self._position = position
        now = self._clock()
        if now < self._next:
            return
        self._next = now + PAUSE_S
        self._is_shown = True
        read = (self._before + position) / _MIB
        self._console.write(f"{_CLEARED}kvorum log: {read:,.0f} MiB read, now {file}")
        self._console.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._console.write(_CLEARED)
            self._console.flush()


@contextmanager
def progress(console: TextIO | None = None) -> Generator[Tell]:
    """Give the function that takes in the progress; it writes nothing unless to a terminal.

    Without a `console` the line goes to standard error.
    """
    chosen = sys.stderr if console is None else console
    if not chosen.isatty():
        yield no_report
        return
    shown = Progress(chosen, time.monotonic)
    try:
        yield shown.tell
    finally:
        shown.end()

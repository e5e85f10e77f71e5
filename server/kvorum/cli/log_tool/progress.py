"""The progress of a command, on the console: one line that is written over again."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from kvorum.inspection.reading import Tell, no_report

FIRST_S: Final = 1.0
"""Commands that are done by then print no line."""
PAUSE_S: Final = 0.5
_MIB: Final = 1 << 20
_CLEARED: Final = "\r\033[K"


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

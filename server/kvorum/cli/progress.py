"""The progress of a command, on a line of the terminal that is written over again and again.

It goes to standard error, and is left out where that is not a terminal.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self, TextIO

from kvorum.inspection.reading import Tell, no_report

FIRST_S: Final = 1.0
"""Commands that are done by then print no line."""
PAUSE_S: Final = 0.5
_MIB: Final = 1 << 20
_CLEARED: Final = "\r\033[K"
_COLUMNS: Final = 80
"""The width of a terminal that has no width of its own."""


class LiveLine:
    """The last line of a terminal; without one nothing is written. Threads may share it."""

    def __init__(self, console: TextIO | None = None) -> None:
        self._console = sys.stderr if console is None else console
        self._writing = threading.RLock()
        self._is_shown = False
        self.is_live = self._console.isatty()
        """Whether there is a terminal to write on."""

    @property
    def is_with_output(self) -> bool:
        """Whether the output of the command is on a terminal as well."""
        return self.is_live and sys.stdout.isatty()

    def show(self, text: str) -> None:
        """Write the line in place of the last one, as much of it as the terminal has place for."""
        if not self.is_live:
            return
        with self._writing:
            # A line that the terminal wraps could not be taken away.
            self._console.write(_CLEARED + text[: _columns(self._console) - 1])
            self._console.flush()
            self._is_shown = True

    def clear(self) -> None:
        """Take the line away."""
        with self._writing:
            if self._is_shown:
                self._console.write(_CLEARED)
                self._console.flush()
                self._is_shown = False

    @contextmanager
    def away(self) -> Generator[None]:
        """Print something else meanwhile, which is on the terminal before the line is again."""
        with self._writing:
            self.clear()
            yield
            if self.is_live:
                sys.stdout.flush()


def _columns(console: TextIO) -> int:
    try:
        return os.get_terminal_size(console.fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return _COLUMNS


class ReadProgress:
    """The bytes that were read so far, in the order in which files are read."""

    def __init__(self, name: str, line: LiveLine, clock: Callable[[], float]) -> None:
        self._name = name
        self._line = line
        self._clock = clock
        self._next = clock() + FIRST_S
        self._file: Path | None = None
        self._position = 0
        self._before = 0

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
        read = (self._before + position) / _MIB
        self._line.show(f"{self._name}: {read:,.0f} MiB read, now {file}")


class Reading:
    """A command, called `name`, that reads files, with its line and what it says beside it."""

    def __init__(self, name: str, line: LiveLine) -> None:
        self._name = name
        self._line = line
        self.tell: Tell = no_report
        """Takes in how far a file was read."""
        if line.is_live:
            self.tell = ReadProgress(name, line, time.monotonic).tell

    def warn(self, text: str) -> None:
        """Print a sentence about the files on standard error."""
        self.say(f"{self._name}: {text}")

    def say(self, text: str) -> None:
        """Print a line on standard error."""
        with self._line.away():
            print(text, file=sys.stderr)


@contextmanager
def read_progress(name: str) -> Generator[Reading]:
    """Give a command that reads files its line, which is taken away at the end."""
    line = LiveLine()
    try:
        yield Reading(name, line)
    finally:
        line.clear()


class TimedProgress:
    """Counted work whose steps take long: a thread shows the count and the time since the start."""

    def __init__(self, line: LiveLine, describe: Callable[[], str]) -> None:
        self._line = line
        self._describe = describe
        self._began = time.monotonic()
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_up, daemon=True)

    def __enter__(self) -> Self:
        if self._line.is_live:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        if self._line.is_live:
            self._thread.join()
        self._line.clear()

    def _keep_up(self) -> None:
        while not self._has_ended.wait(PAUSE_S):
            minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
            self._line.show(f"{self._describe()}, {minutes}:{seconds:02}")

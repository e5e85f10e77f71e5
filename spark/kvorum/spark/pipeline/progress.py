"""Progress of a run on the console: one line that is written again, or plain lines."""

import time
from typing import Final, TextIO

PLAIN_LINE_S: Final = 10.0
"""Seconds between two lines where the output is not a terminal."""


class Console:
    """The reports of a run while it works, as text."""

    def __init__(self, stream: TextIO, *, is_terminal: bool) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        self._started = time.monotonic()
        self._shown_at = self._started
        self._width: int = 0
        self._last: str = ""

    def note(self, text: str) -> None:
        """Report an event in one line."""
        self.close()
        print(text, file=self._stream, flush=True)

    def show(self, what: str, *, done: int, total: int, records: int) -> None:
        """Report that `done` of `total` are done, with this many records."""
        elapsed = time.monotonic() - self._started
        rate = round(records / elapsed) if elapsed > 0 else 0
        text = f"{done} of {total} {what} done, {records:,} records, {rate:,} a second"
        if self._is_terminal:
            self._stream.write(f"\r{text.ljust(self._width)}")
            self._stream.flush()
            self._width = len(text)
            return
        is_due = time.monotonic() - self._shown_at >= PLAIN_LINE_S
        # The last line says that all is done, unless that is the first thing to say.
        if text != self._last and (is_due or (self._last and done == total)):
            print(text, file=self._stream, flush=True)
            self._shown_at, self._last = time.monotonic(), text

    def close(self) -> None:
        """End the report."""
        if self._width:
            self._stream.write(f"\r{' ' * self._width}\r")
            self._width = 0

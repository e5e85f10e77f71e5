"""Progress of a run on the console: one line that is written again, or plain lines."""

import time
from typing import Final, Protocol, TextIO

PLAIN_LINE_S: Final = 10.0
"""Seconds between two lines where the output is not a terminal."""


class Progress(Protocol):
    """The reports of a run while it works."""

    def note(self, text: str) -> None:
        """Report an event in one line."""
        ...

    def show(self, what: str, *, done: int, total: int, records: int) -> None:
        """Report that `done` of `total` are done, with this many records."""
        ...

    def close(self) -> None:
        """End the report."""
        ...


class Console:
    """Progress as text; `now` is a clock in seconds."""

    def __init__(self, stream: TextIO, *, is_terminal: bool) -> None:
        self._stream = stream
        self._is_terminal = is_terminal
        self._started = time.monotonic()
        self._shown_at = self._started
        self._width: int = 0
        self._last: str = ""

    def note(self, text: str) -> None:
        """See `Progress`."""
        self.close()
        print(text, file=self._stream, flush=True)

    def show(self, what: str, *, done: int, total: int, records: int) -> None:
        """See `Progress`."""
        elapsed = time.monotonic() - self._started
        rate = round(records / elapsed) if elapsed > 0 else 0
        text = f"{done} of {total} {what} done, {records:,} records, {rate:,} a second"
        if self._is_terminal:
            self._stream.write(f"\r{text.ljust(self._width)}")
            self._stream.flush()
            self._width = len(text)
        elif text != self._last and (self._is_due() or (self._last and done == total)):
            # The last line says that all is done, unless that is the first thing to say.
            print(text, file=self._stream, flush=True)
            self._shown_at, self._last = time.monotonic(), text

    def _is_due(self) -> bool:
        return time.monotonic() - self._shown_at >= PLAIN_LINE_S

    def close(self) -> None:
        """See `Progress`."""
        if self._width:
            self._stream.write(f"\r{' ' * self._width}\r")
            self._width = 0

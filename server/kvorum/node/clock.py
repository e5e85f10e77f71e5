"""The clock of a running node; whoever needs time is handed one, so that tests can set it."""

from __future__ import annotations

import time


class SystemClock:
    """The operating system's clocks."""

    def monotonic_ms(self) -> float:
        """Return milliseconds of a clock that never goes back, for timers."""
        return time.monotonic() * 1000

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return time.time_ns() // 1_000_000

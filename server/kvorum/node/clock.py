"""The sources of the time. Code that needs it receives a `Clock`, so that tests can set it."""

import time
from typing import Protocol


class Clock(Protocol):
    """A source of the time."""

    def monotonic_ms(self) -> float:
        """Return the milliseconds of a monotonic clock, for timers."""
        ...

    def wall_ms(self) -> int:
        """Return the milliseconds since 1970, for timestamps in files and responses."""
        ...


class SystemClock:
    """The clocks of the operating system, which a running node uses."""

    def monotonic_ms(self) -> float:
        """Return the milliseconds of a monotonic clock, for timers."""
        return time.monotonic() * 1000

    def wall_ms(self) -> int:
        """Return the milliseconds since 1970."""
        return time.time_ns() // 1_000_000

"""The pace of a disk: after a slow write the next ones of that log count as slow too."""

from collections.abc import Callable
from typing import Final, Protocol

SLOW_MS: Final = 10.0
"""The duration from which on a write counts as slow."""
SLOW_FOR_MS: Final = 10_000.0
"""The time for which writes are done in threads after a slow one."""


class DiskThreads(Protocol):
    """Threads for what may block, and the clock by which it is measured."""

    def monotonic_ms(self) -> float:
        """Return the milliseconds of a monotonic clock."""
        ...

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        """Do blocking work in parallel; then call the owner with its error, or None."""
        ...


class DiskPace:
    """The pace of the writes of one log; any thread may measure one."""

    def __init__(self, threads: DiskThreads) -> None:
        self._threads = threads
        self._slow_until_ms = float("-inf")

    @property
    def is_slow(self) -> bool:
        """Whether a write was slow a short time ago."""
        return self._threads.monotonic_ms() < self._slow_until_ms

    def begin(self) -> float:
        """Return the time at which a write begins, for `end`."""
        return self._threads.monotonic_ms()

    def end(self, begun_ms: float) -> None:
        """Take in how long it has taken."""
        now_ms = self._threads.monotonic_ms()
        if now_ms - begun_ms >= SLOW_MS:
            self._slow_until_ms = now_ms + SLOW_FOR_MS

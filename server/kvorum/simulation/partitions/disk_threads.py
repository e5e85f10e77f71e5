"""The threads that write the logs of a simulated broker, and how slow its disk is.

No time passes in this world while something is done. So the clock by which a log measures its
writes jumps now and then instead, in the processes whose disk is slow. What a thread does there
begins late now and then.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from kvorum.node.runtime import Runtime
from kvorum.storage.log.disk_pace import SLOW_MS

SLOW_DISK: Final = 0.25
"""The share of processes whose disk is slow."""
SLOW_WRITE: Final = 0.01
"""The share of readings of a slow disk's clock at which it has jumped."""

SLOW_WORK: Final = 0.1
"""The share of a thread's works on a slow disk that take longer than most."""
SLOW_WORK_MS_MAX: Final = 60.0


class SimulatedDiskThreads:
    """The threads of one process."""

    def __init__(self, runtime: Runtime, random: Random) -> None:
        self._runtime = runtime
        self._random = random
        self._is_slow = random.random() < SLOW_DISK
        self._spent_ms = 0.0

    def monotonic_ms(self) -> float:
        """Return the time, and what slow writes have taken."""
        if self._is_slow and self._random.random() < SLOW_WRITE:
            self._spent_ms += SLOW_MS
        return self._runtime.monotonic_ms() + self._spent_ms

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        """Do work later, and call back after that."""
        begin = partial(self._runtime.run_blocking, work, then)
        if self._is_slow and self._random.random() < SLOW_WORK:
            delay_ms = self._random.uniform(SLOW_MS, SLOW_WORK_MS_MAX)
            self._runtime.call_at(self._runtime.monotonic_ms() + delay_ms, begin)
        else:
            begin()

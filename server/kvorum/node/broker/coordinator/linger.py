"""The time for which a coordinator's batch is open (``group.coordinator.append.linger.ms``)."""

from collections.abc import Callable
from typing import Final

from kvorum.node.runtime import Runtime, Timer

ADAPTIVE: Final = -1
"""The setting by which a batch has the operations of one turn: what was there to be done."""


class AppendLinger:
    """Calls `flush` when the open batch is to be appended."""

    def __init__(self, linger_ms: int, runtime: Runtime, flush: Callable[[], None]) -> None:
        self._linger_ms = linger_ms
        self._runtime = runtime
        self._flush = flush
        self._end_ms = 0.0
        self._timer: Timer | None = None
        self._is_turn_end_due = False

    @property
    def is_over(self) -> bool:
        """Whether a batch that has been begun is to wait no more for others' operations."""
        return self._linger_ms != ADAPTIVE and self._runtime.monotonic_ms() >= self._end_ms

    def begin(self) -> None:
        """Begin the time of a batch."""
        if self._linger_ms != ADAPTIVE:
            self._end_ms = self._runtime.monotonic_ms() + self._linger_ms
            if self._linger_ms > 0:
                self._timer = self._runtime.call_at(self._end_ms, self._flush)
        elif not self._is_turn_end_due:
            self._is_turn_end_due = True
            self._runtime.call_soon(self._end_turn)

    def end(self) -> None:
        """Call no more for the batch that has been begun."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_turn(self) -> None:
        self._is_turn_end_due = False
        self._flush()

"""The timers of a coordinator (Kafka's CoordinatorTimerImpl)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from kvorum.coordinator.effects import CancelTimer, SetTimer
from kvorum.node.runtime import Runtime, Timer

RETRY_MS: Final = 500
"""The time after which a timer fires again whose records were not committed; Kafka's too."""


@dataclass(slots=True)
class _Timing:
    """A timer as it was set, its deadline, and the one that rings at the deadline or before."""

    change: SetTimer
    deadline_ms: float
    rings_ms: float
    timer: Timer


class CoordinatorTimer:
    """Calls `fire` with a timer, as it was set, when its time has come; a key has one at most.

    The session of a member begins again with each of its requests. So a deadline that moves back
    leaves its timer as it is, and that is set again when it rings too early.
    """

    def __init__(self, runtime: Runtime, fire: Callable[[SetTimer], None]) -> None:
        self._runtime = runtime
        self._fire = fire
        self._timings: dict[str, _Timing] = {}

    def apply(self, change: SetTimer | CancelTimer) -> None:
        """Set, replace or cancel a timer."""
        if isinstance(change, CancelTimer):
            self._cancel(change.key)
            return
        key = change.timeout.key
        deadline_ms = self._runtime.monotonic_ms() + change.delay_ms
        known = self._timings.get(key)
        if known is not None and change.keeps_present:
            return
        if known is not None and known.rings_ms <= deadline_ms:
            known.change = change
            known.deadline_ms = deadline_ms
            return
        self._cancel(key)
        timer = self._runtime.call_at(deadline_ms, partial(self._ring, key))
        self._timings[key] = _Timing(change, deadline_ms, deadline_ms, timer)

    def retry(self, change: SetTimer) -> None:
        """Set a timer that has fired again, unless its key has got another one meanwhile."""
        if change.timeout.key not in self._timings:
            self.apply(replace(change, delay_ms=RETRY_MS))

    def cancel_all(self) -> None:
        """Cancel every timer."""
        for timing in self._timings.values():
            timing.timer.cancel()
        self._timings.clear()

    def _cancel(self, key: str) -> None:
        timing = self._timings.pop(key, None)
        if timing is not None:
            timing.timer.cancel()

    def _ring(self, key: str) -> None:
        timing = self._timings[key]
        if timing.rings_ms < timing.deadline_ms:
            timing.rings_ms = timing.deadline_ms
            timing.timer = self._runtime.call_at(timing.deadline_ms, partial(self._ring, key))
            return
        del self._timings[key]
        self._fire(timing.change)

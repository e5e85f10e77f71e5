"""The timers of a coordinator (Kafka's CoordinatorTimerImpl)."""

from collections.abc import Callable
from functools import partial

from kvorum.coordinator.effects import CancelTimer, SetTimer, Timeout
from kvorum.node.runtime import Runtime, Timer


class CoordinatorTimer:
    """Calls `fire` with a timeout when its time has come; a key has one timer at most."""

    def __init__(self, runtime: Runtime, fire: Callable[[Timeout], None]) -> None:
        self._runtime = runtime
        self._fire = fire
        self._timers: dict[str, Timer] = {}

    def apply(self, change: SetTimer | CancelTimer) -> None:
        """Set, replace or cancel a timer."""
        if isinstance(change, CancelTimer):
            self._cancel(change.key)
            return
        self._cancel(change.timeout.key)
        self._timers[change.timeout.key] = self._runtime.call_at(
            self._runtime.monotonic_ms() + change.delay_ms, partial(self._fired, change.timeout)
        )

    def cancel_all(self) -> None:
        """Cancel every timer."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _cancel(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _fired(self, timeout: Timeout) -> None:
        del self._timers[timeout.key]
        self._fire(timeout)

"""The time that a coordinator's operations have until they are committed (OperationTimeout)."""

from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple

from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.write_event import CoordinatorWriteEvent
from kvorum.node.runtime import Runtime, Timer
from kvorum.wire.error_codes import ErrorCode

NEVER_MS: Final = float("inf")


class _Waiting(NamedTuple):
    """An operation that waits, by its deadline; the number keeps equal ones in their order."""

    deadline_ms: float
    number: int
    event: CoordinatorWriteEvent[Any]


class OperationTimeouts:
    """Answers operations that have waited for too long; one timer is enough for all.

    An operation without a time-out of its own has `timeout_ms`.
    """

    def __init__(self, runtime: Runtime, timeout_ms: int) -> None:
        self._runtime = runtime
        self._timeout_ms = timeout_ms
        self._waiting: list[_Waiting] = []
        self._numbers = count()
        self._timer: Timer | None = None
        self._rings_at_ms = NEVER_MS

    def add(self, event: CoordinatorWriteEvent[Any]) -> None:
        """Give an operation its time, which begins at this moment."""
        self._forget_completed()
        timeout_ms = self._timeout_ms if event.timeout_ms is None else event.timeout_ms
        deadline_ms = self._runtime.monotonic_ms() + timeout_ms
        heappush(self._waiting, _Waiting(deadline_ms, next(self._numbers), event))
        self._time_first()

    def _forget_completed(self) -> None:
        while self._waiting and self._waiting[0].event.is_over:
            heappop(self._waiting)

    def _time_first(self) -> None:
        if not self._waiting or self._waiting[0].deadline_ms >= self._rings_at_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at_ms = self._waiting[0].deadline_ms
        self._timer = self._runtime.call_at(self._rings_at_ms, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._rings_at_ms = NEVER_MS
        now_ms = self._runtime.monotonic_ms()
        while self._waiting and self._waiting[0].deadline_ms <= now_ms:
            event = heappop(self._waiting).event
            event.complete(RequestError.with_default_message(ErrorCode.REQUEST_TIMED_OUT))
        self._forget_completed()
        self._time_first()

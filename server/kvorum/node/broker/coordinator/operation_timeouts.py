"""The time that a coordinator's operations have until they are committed (OperationTimeout)."""

from collections import deque
from typing import Any

from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.write_event import CoordinatorWriteEvent
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode


class OperationTimeouts:
    """Answers operations that have waited for too long; all of them may wait equally long.

    So they are in the order of their deadlines, and one timer is enough.
    """

    def __init__(self, runtime: Runtime, timeout_ms: int) -> None:
        self._runtime = runtime
        self._timeout_ms = timeout_ms
        self._waiting: deque[tuple[float, CoordinatorWriteEvent[Any]]] = deque()
        self._is_timed = False

    def add(self, event: CoordinatorWriteEvent[Any]) -> None:
        """Give an operation its time, which begins at this moment."""
        self._forget_completed()
        self._waiting.append((self._runtime.monotonic_ms() + self._timeout_ms, event))
        self._time_first()

    def _forget_completed(self) -> None:
        while self._waiting and self._waiting[0][1].is_over:
            self._waiting.popleft()

    def _time_first(self) -> None:
        if self._waiting and not self._is_timed:
            self._is_timed = True
            self._runtime.call_at(self._waiting[0][0], self._ring)

    def _ring(self) -> None:
        self._is_timed = False
        now_ms = self._runtime.monotonic_ms()
        while self._waiting and self._waiting[0][0] <= now_ms:
            _, event = self._waiting.popleft()
            event.complete(RequestError.with_default_message(ErrorCode.REQUEST_TIMED_OUT))
        self._forget_completed()
        self._time_first()

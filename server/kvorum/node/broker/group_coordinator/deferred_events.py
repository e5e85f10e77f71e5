"""Operations that are done and wait until their records are committed (DeferredEventQueue)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kvorum.metadata.request_error import RequestError
from kvorum.node.event_loop import Runtime, Timer
from kvorum.wire.error_codes import ErrorCode


@dataclass(slots=True, eq=False)
class DeferredEvent:
    """An operation, and the offset that the high watermark has to reach for its answer.

    `then` takes the operation's response, whatever its type, or a RequestError.
    """

    offset: int
    response: Any  # of the operation's own type
    then: Callable[[Any], None]
    timeout: Timer | None = None
    is_over: bool = False

    def complete(self) -> None:
        """Answer, unless that was done before."""
        self._end(self.response)

    def fail(self, code: ErrorCode) -> None:
        """Answer with an error, unless it was answered before."""
        self._end(RequestError.with_default_message(code))

    def _end(self, result: Any) -> None:
        if self.is_over:
            return
        self.is_over = True
        if self.timeout is not None:
            self.timeout.cancel()
        self.then(result)


@dataclass(slots=True)
class DeferredEventQueue:
    """Events in the order of their offsets; one that waits for too long is answered so."""

    runtime: Runtime
    timeout_ms: int
    _events: deque[DeferredEvent] = field(default_factory=deque[DeferredEvent])

    def add(self, event: DeferredEvent) -> None:
        """Have an event wait."""
        deadline_ms = self.runtime.monotonic_ms() + self.timeout_ms
        late = partial(event.fail, ErrorCode.REQUEST_TIMED_OUT)
        event.timeout = self.runtime.call_at(deadline_ms, late)
        self._events.append(event)

    def complete_up_to(self, offset: int) -> None:
        """Complete the events that have waited for `offset`."""
        while self._events and self._events[0].offset <= offset:
            self._events.popleft().complete()

    def fail_all(self, code: ErrorCode) -> None:
        """Answer all who wait with an error."""
        while self._events:
            self._events.popleft().fail(code)

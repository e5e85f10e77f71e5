"""Operations that are done and wait until their records are committed (DeferredEventQueue)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kvorum.groups.results import Append
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
    append: Append | None
    then: Callable[[Any], None]
    timeout: Timer | None = None
    is_over: bool = False

    def complete(self) -> None:
        """Answer."""
        self._end()
        self.then(self.response)

    def fail(self, code: ErrorCode) -> None:
        """Answer with an error."""
        self._end()
        self.then(RequestError.with_default_message(code))

    def _end(self) -> None:
        self.is_over = True
        if self.timeout is not None:
            self.timeout.cancel()


@dataclass(slots=True)
class DeferredEventQueue:
    """Events in the order of their offsets; `on_timeout` is called with one whose time is up."""

    runtime: Runtime
    timeout_ms: int
    on_timeout: Callable[[DeferredEvent], None]
    _events: deque[DeferredEvent] = field(default_factory=deque[DeferredEvent])

    def add(self, event: DeferredEvent) -> None:
        """Have an event wait."""
        deadline_ms = self.runtime.monotonic_ms() + self.timeout_ms
        event.timeout = self.runtime.call_at(deadline_ms, partial(self.on_timeout, event))
        self._events.append(event)

    def take_up_to(self, offset: int) -> list[DeferredEvent]:
        """Return the events that have waited for `offset`, and hold them no longer."""
        taken: list[DeferredEvent] = []
        while self._events and self._events[0].offset <= offset:
            event = self._events.popleft()
            if not event.is_over:
                taken.append(event)
        return taken

    def take_all(self) -> list[DeferredEvent]:
        """Return all events, and hold none."""
        taken = [event for event in self._events if not event.is_over]
        self._events.clear()
        return taken

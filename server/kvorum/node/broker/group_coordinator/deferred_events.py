"""Operations that are done and wait until their records are committed (DeferredEventQueue)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kvorum.groups.results import Append
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode

_MS_PER_S: Final = 1000


@dataclass(slots=True, eq=False)
class DeferredEvent:
    """An operation, and the offset that the high watermark has to reach for its answer.

    `future` is of the operation's response, whatever its type.
    """

    offset: int
    response: Any  # of the operation's own type
    append: Append | None
    future: asyncio.Future[Any]
    timeout: asyncio.TimerHandle | None = None
    is_over: bool = False

    def complete(self) -> None:
        """Answer; a client that has gone need not be answered."""
        self._end()
        if not self.future.done():
            self.future.set_result(self.response)

    def fail(self, code: ErrorCode) -> None:
        """Answer with an error."""
        self._end()
        if not self.future.done():
            self.future.set_exception(RequestError.with_default_message(code))

    def _end(self) -> None:
        self.is_over = True
        if self.timeout is not None:
            self.timeout.cancel()


@dataclass(slots=True)
class DeferredEventQueue:
    """Events in the order of their offsets; `on_timeout` is called with one whose time is up."""

    timeout_ms: int
    on_timeout: Callable[[DeferredEvent], None]
    _events: deque[DeferredEvent] = field(default_factory=deque[DeferredEvent])

    def add(self, event: DeferredEvent) -> None:
        """Have an event wait."""
        event.timeout = asyncio.get_running_loop().call_later(
            self.timeout_ms / _MS_PER_S, self.on_timeout, event
        )
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

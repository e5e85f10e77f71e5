"""The events of a world in order of time; time only moves from one event to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Event:
    """A planned callback."""

    callback: Callable[[], None] | None

    def cancel(self) -> None:
        """Cancel the event."""
        self.callback = None


class Events:
    """The events to come; `now_ms` is the world's time since its beginning."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        # Two events at the same time happen in the order in which they were planned.
        self._heap: list[tuple[float, int, Event]] = []
        self._planned = 0

    def at(self, at_ms: float, callback: Callable[[], None]) -> Event:
        """Plan a callback for a time; a time in the past means now."""
        self._planned += 1
        event = Event(callback)
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), self._planned, event))
        return event

    def after(self, delay_ms: float, callback: Callable[[], None]) -> Event:
        """Plan a callback for `delay_ms` from now."""
        return self.at(self.now_ms + delay_ms, callback)

    def take_next(self, until_ms: float) -> Callable[[], None] | None:
        """Move to the next event and return its callback; None where none is due by `until_ms`."""
        while self._heap and self._heap[0][0] <= until_ms:
            at_ms, _, event = heapq.heappop(self._heap)
            if event.callback is not None:
                self.now_ms = at_ms
                return event.callback
        self.now_ms = until_ms
        return None

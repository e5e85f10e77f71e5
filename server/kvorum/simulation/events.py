"""The events of a world in order of time, and the clocks of its nodes with their errors.

Time only moves from one event to the next.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

WALL_START_MS = 1_700_000_000_000
"""The wall-clock time at which a world begins."""


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
        number = self._planned + 1
        self._planned = number
        event = Event(callback)
        heapq.heappush(self._heap, (max(at_ms, self.now_ms), number, event))
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

    def run_until(self, until_ms: float) -> None:
        """Let everything happen that is due by a time."""
        while (callback := self.take_next(until_ms)) is not None:
            callback()


class NodeClock:
    """A monotonic clock with drift, and a wall clock that may be set forwards and backwards.

    The clocks of a paused node go on, as those of a stopped process do.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._rate = 1.0
        self._base_world_ms = 0.0
        self._base_local_ms = 0.0
        self._wall_offset_ms = 0

    def set_drift(self, drift: float) -> None:
        """Make the monotonic clock go faster (0.1: by a tenth) or slower from now on."""
        self._base_local_ms = self.monotonic_ms()
        self._base_world_ms = self._events.now_ms
        self._rate = 1.0 + drift

    def jump_wall(self, by_ms: int) -> None:
        """Set the wall clock forwards, or backwards."""
        self._wall_offset_ms += by_ms

    def monotonic_ms(self) -> float:
        """Return milliseconds of a clock that never goes back."""
        return self._base_local_ms + (self._events.now_ms - self._base_world_ms) * self._rate

    def wall_ms(self) -> int:
        """Return milliseconds since 1970 by this node's wall clock."""
        return WALL_START_MS + self._wall_offset_ms + int(self.monotonic_ms())

    def world_ms(self, local_ms: float) -> float:
        """Return the world's time at which the monotonic clock shows `local_ms`."""
        return self._base_world_ms + (local_ms - self._base_local_ms) / self._rate

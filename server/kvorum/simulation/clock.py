"""The clocks of one node, each with its own errors."""

from __future__ import annotations

from kvorum.simulation.events import Events

WALL_START_MS = 1_700_000_000_000
"""The wall-clock time at which a world begins."""


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
        elapsed_ms = self._events.now_ms - self._base_world_ms
        return self._base_local_ms + elapsed_ms * self._rate

    def wall_ms(self) -> int:
        """Return milliseconds since 1970 by this node's wall clock."""
        return WALL_START_MS + self._wall_offset_ms + int(self.monotonic_ms())

    def world_ms(self, local_ms: float) -> float:
        """Return the world's time at which the monotonic clock shows `local_ms`."""
        return self._base_world_ms + (local_ms - self._base_local_ms) / self._rate

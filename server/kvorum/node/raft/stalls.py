"""Detection of stalls of the process: it got no processor time, or one step took too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

BEAT_MS = 100
"""Short enough to detect stalls near the fetch timeout, and cheap for the processor."""
STALL_MS_MIN = 100
"""Shorter stalls are normal for a busy loop."""


class StallWatch:
    """Calls `on_stall` with the milliseconds by which the running event loop was late."""

    def __init__(self, on_stall: Callable[[float], None]) -> None:
        self._on_stall = on_stall
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + BEAT_MS / 1000
        self._timer = self._loop.call_at(self._due, self._beat)

    def stop(self) -> None:
        """Stop the watch."""
        self._timer.cancel()

    def _beat(self) -> None:
        # Of timers that are due, the loop runs the older ones first: before any timeout that ran
        # out during the stall is handled, the stall is reported.
        now = self._loop.time()
        late_ms = (now - self._due) * 1000
        self._due = now + BEAT_MS / 1000
        self._timer = self._loop.call_at(self._due, self._beat)
        if late_ms >= STALL_MS_MIN:
            self._on_stall(late_ms)

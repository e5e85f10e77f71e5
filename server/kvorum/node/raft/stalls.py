"""Notices that the process itself stood still: no processor for it, or one long piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

BEAT_MS = 100
"""Often enough to see what comes near the fetch timeout, and next to nothing for the processor."""
STALL_MS_MIN = 100
"""Less than this is everyday life of a busy loop."""


class StallWatch:
    """Tells `on_stall` by how many milliseconds the running event loop came too late."""

    def __init__(self, on_stall: Callable[[float], None]) -> None:
        self._on_stall = on_stall
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + BEAT_MS / 1000
        self._timer = self._loop.call_at(self._due, self._beat)

    def stop(self) -> None:
        """Watch no more."""
        self._timer.cancel()

    def _beat(self) -> None:
        # Of timers that are due, the loop runs the older ones first: whatever has run out since the
        # stall began finds it told already.
        now = self._loop.time()
        late_ms = (now - self._due) * 1000
        self._due = now + BEAT_MS / 1000
        self._timer = self._loop.call_at(self._due, self._beat)
        if late_ms >= STALL_MS_MIN:
            self._on_stall(late_ms)

"""Events that a client can bring about as often as it likes: one line in a while tells of them."""

from __future__ import annotations

INTERVAL_MS = 10_000
"""One line in this time, however often it happens."""


class RareEvents:
    """Says when to tell of an event, and how many like it were not told of."""

    __slots__ = ("_told_at_ms", "_untold_count")

    def __init__(self) -> None:
        self._told_at_ms: float | None = None
        self._untold_count = 0

    def happened(self, now_ms: float) -> int | None:
        """Return how many were not told of before this one; None where this one is not either."""
        told_at_ms = self._told_at_ms
        if told_at_ms is not None and now_ms < told_at_ms + INTERVAL_MS:
            self._untold_count += 1
            return None
        untold_count, self._untold_count = self._untold_count, 0
        self._told_at_ms = now_ms
        return untold_count

"""Events that a client can cause as often as it likes: the log reports one per interval."""

from __future__ import annotations

INTERVAL_MS = 10_000
"""The least time between two reported events."""


class RareEvents:
    """Limits how often an event is logged, and counts the suppressed ones in between."""

    __slots__ = ("_reported_at_ms", "_suppressed_count")

    def __init__(self) -> None:
        self._reported_at_ms: float | None = None
        self._suppressed_count = 0

    def happened(self, now_ms: float) -> int | None:
        """Return how many events were suppressed before this one; None if this one is, too."""
        reported_at_ms = self._reported_at_ms
        if reported_at_ms is not None and now_ms < reported_at_ms + INTERVAL_MS:
            self._suppressed_count += 1
            return None
        suppressed_count, self._suppressed_count = self._suppressed_count, 0
        self._reported_at_ms = now_ms
        return suppressed_count

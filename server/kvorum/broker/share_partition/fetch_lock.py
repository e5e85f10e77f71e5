"""The lock that lets one fetch at a time acquire from a share partition."""

from collections.abc import Hashable
from typing import Final, NamedTuple

PERCENT: Final = 100


class FetchLockUse(NamedTuple):
    """The time for which a fetch had the lock, and its share in the time since the fetch before.

    `percent` is None where the clock ran backwards between the two.
    """

    held_ms: float
    percent: int | None


class FetchLock:
    """The lock, and since when it is held or free."""

    def __init__(self) -> None:
        self._holder: Hashable | None = None
        self._acquired_ms = 0.0
        self._released_ms: float | None = None
        self._idle_ms = 0.0

    def acquire(self, fetch_id: Hashable, now_ms: float) -> bool:
        """Give the lock to a fetch if it is free; return whether it was."""
        if self._holder is not None:
            return False
        self._holder = fetch_id
        self._acquired_ms = now_ms
        self._idle_ms = 0.0 if self._released_ms is None else now_ms - self._released_ms
        return True

    def release(self, now_ms: float) -> FetchLockUse:
        """Free the lock."""
        self._holder = None
        held_ms = now_ms - self._acquired_ms
        self._released_ms = now_ms
        return FetchLockUse(held_ms, self._percent(held_ms))

    def _percent(self, held_ms: float) -> int | None:
        idle_ms = self._idle_ms
        if idle_ms < 0:
            return None
        if held_ms + idle_ms == 0:
            return PERCENT
        # As in Kafka, a lock that is held for no time counts as held for one millisecond.
        part = 1 / max(idle_ms, 1.0) if held_ms == 0 else held_ms / (held_ms + idle_ms)
        return int(part * PERCENT)

"""The locks of acquired records, by their deadlines (Kafka's AcquisitionLockTimerTask)."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

TIDY_SIZE_MIN: Final = 1024
"""The number of locks from which on cancelled ones are dropped before their deadlines."""


@dataclass(slots=True, eq=False)
class AcquisitionLock:
    """The time for which a member has the records from `first_offset` to `last_offset`."""

    first_offset: int
    last_offset: int
    deadline_ms: float
    has_expired: bool = False
    is_cancelled: bool = False

    @property
    def record_count(self) -> int:
        """The number of offsets from the first to the last one."""
        return self.last_offset - self.first_offset + 1


class _Entry(NamedTuple):
    """A lock by its deadline; its number is its own, so that no two locks are compared."""

    deadline_ms: float
    number: int
    lock: AcquisitionLock


class AcquisitionLocks:
    """The locks of one share partition: those of one deadline expire in the order they began."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._next_number = 0
        self._tidy_size = TIDY_SIZE_MIN

    @property
    def next_deadline_ms(self) -> float | None:
        """The first deadline of a lock that holds; None without one."""
        entries = self._entries
        while entries and entries[0].lock.is_cancelled:
            heapq.heappop(entries)
        return entries[0].deadline_ms if entries else None

    def begin(self, first_offset: int, last_offset: int, *, deadline_ms: float) -> AcquisitionLock:
        """Return a lock that holds until its deadline, unless it is cancelled."""
        lock = AcquisitionLock(first_offset, last_offset, deadline_ms)
        self._tidy()
        heapq.heappush(self._entries, _Entry(deadline_ms, self._next_number, lock))
        self._next_number += 1
        return lock

    def expired(self, now_ms: float) -> Iterator[AcquisitionLock]:
        """Yield the locks whose deadlines have come, except those that are cancelled meanwhile."""
        while True:
            deadline_ms = self.next_deadline_ms
            if deadline_ms is None or deadline_ms > now_ms:
                return
            lock = heapq.heappop(self._entries).lock
            lock.has_expired = True
            yield lock

    def _tidy(self) -> None:
        """Drop the cancelled locks when they may be more than those that hold."""
        if len(self._entries) < self._tidy_size:
            return
        self._entries = [entry for entry in self._entries if not entry.lock.is_cancelled]
        heapq.heapify(self._entries)
        self._tidy_size = max(TIDY_SIZE_MIN, 2 * len(self._entries))

"""Kafka's DeferredEventQueue: responses that wait until their records are committed."""

from __future__ import annotations

import asyncio
from collections import deque


class DeferredEventQueue:
    """Futures in the order of the offsets that they wait for."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def wait_for(self, offset: int) -> asyncio.Future[None]:
        """Return a future that is done once `offset` is stable; offsets never go down."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        return future

    def complete(self, stable_offset: int) -> None:
        """End the futures whose offset is stable."""
        while self._waiting and self._waiting[0][0] <= stable_offset:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def fail(self, error: Exception) -> None:
        """End all futures with `error`."""
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)

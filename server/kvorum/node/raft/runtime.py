"""What a driver needs of the world it runs in: time, turns, and threads for what blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.node.raft.settings import Clock
from kvorum.raft.effects import Send


class Timer(Protocol):
    """Something that was put off, and can still be called off."""

    def cancel(self) -> None:
        """Call it off; nothing happens where it is too late."""
        ...


class Runtime(Clock, Protocol):
    """A clock, and ways to do things later or elsewhere. All callbacks come one at a time."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back when others have had their turn."""
        ...

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back when the monotonic clock shows `deadline_ms`, or soon if it does already."""
        ...

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        """Do work that blocks beside everything else; then tell what it raised, or None."""
        ...


class Links(Protocol):
    """Ways to other replicas."""

    def send(self, send: Send) -> None:
        """Send a request; what comes of it is told once, under its number."""
        ...


Connect = Callable[[Callable[[int, PeerResult], None]], Links]
"""Makes the links of a replica, given whom to tell what came of a request."""


class AsyncioRuntime:
    """The event loop of the caller, with threads for what blocks."""

    def __init__(self, clock: Clock, *, thread_name: str) -> None:
        self.executor = ThreadPoolExecutor(2, thread_name)
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._under_way: set[asyncio.Future[object]] = set()

    def monotonic_ms(self) -> float:
        """Return milliseconds of a clock that never goes back."""
        return self._clock.monotonic_ms()

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return self._clock.wall_ms()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the loop."""
        self._loop.call_soon(callback)

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back at a time of the monotonic clock."""
        delay_ms = max(deadline_ms - self.monotonic_ms(), 0)
        return self._loop.call_later(delay_ms / 1000, callback)

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        """Do work in a thread; call back in the loop."""
        future: asyncio.Future[object] = asyncio.ensure_future(
            self._loop.run_in_executor(self.executor, work)
        )
        self._under_way.add(future)

        def finished(done: asyncio.Future[object]) -> None:
            self._under_way.discard(done)
            error = done.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            then(error)

        future.add_done_callback(finished)

    async def join(self) -> None:
        """Wait until nothing blocking is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def close(self, last: Callable[[], None]) -> None:
        """Do one last thing in a thread, and give the threads up."""
        try:
            await self._loop.run_in_executor(self.executor, last)
        finally:
            self.executor.shutdown(wait=False)

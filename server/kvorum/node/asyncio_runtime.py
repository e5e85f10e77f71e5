"""A `Runtime` in asyncio's event loop, with threads for blocking work."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from kvorum.node.clock import Clock
from kvorum.node.runtime import Timer


class AsyncioRuntime:
    """The event loop of the caller, with threads for blocking work.

    The threads call back in the context of the caller.
    """

    def __init__(self, clock: Clock, *, thread_name: str, thread_count: int = 2) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name)
        self.monotonic_ms = clock.monotonic_ms
        self.wall_ms = clock.wall_ms
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._under_way: set[asyncio.Future[object]] = set()
        self._when_idle: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call back in the next turn of the loop."""
        self._loop.call_soon(callback)

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        """Call back in a turn of the loop; any thread may ask."""
        self._loop.call_soon_threadsafe(callback, context=self._context)

    def run_in_loop(self, work: Callable[[], None]) -> None:
        """Do something in the loop, and wait for it in another thread; raise its errors."""

        async def run() -> None:
            work()

        context = self._context.copy()
        context.run(asyncio.run_coroutine_threadsafe, run(), self._loop).result()

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back at a time of the monotonic clock."""
        delay_ms = max(deadline_ms - self.monotonic_ms(), 0)
        return self._loop.call_later(delay_ms / 1000, callback)

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        """Do blocking work in a thread; call back in the loop."""
        future: asyncio.Future[object] = asyncio.ensure_future(
            self._loop.run_in_executor(self._executor, work)
        )
        self._under_way.add(future)

        def finished(done: asyncio.Future[object]) -> None:
            self._under_way.discard(done)
            error = done.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            try:
                then(error)
            finally:
                self._note_idle()

        future.add_done_callback(finished)

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back once no thread works for this runtime."""
        self._when_idle.append(callback)
        self._note_idle()

    def _note_idle(self) -> None:
        while self._when_idle and not self._under_way:
            self._when_idle.pop(0)()

    def close(self) -> None:
        """End the threads."""
        self._executor.shutdown(wait=False)

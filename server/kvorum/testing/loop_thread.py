"""An event loop in a thread of its own, for callers without one."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from kvorum.node.embedded.cluster import ClusterStoppedError
from kvorum.node.embedded.pausable_loop import PausableEventLoop

Result = TypeVar("Result")


class LoopThread:
    """A thread with a running event loop, in which other threads have coroutines run."""

    def __init__(self, name: str) -> None:
        self._runner = asyncio.Runner(loop_factory=PausableEventLoop)
        self._loop = self._runner.get_loop()
        self._ended = asyncio.Event()
        self._is_ending = False
        # Work that is scheduled before the end is run or cancelled; none is scheduled after it.
        self._scheduling = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of a coroutine; a caller that is interrupted has it cancelled.

        Raises ClusterStoppedError if the loop ends meanwhile, or has ended.
        """
        with self._scheduling:
            if self._is_ending:
                work.close()
                raise ClusterStoppedError("the cluster was stopped meanwhile")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise ClusterStoppedError("the cluster was stopped meanwhile") from None
        finally:
            future.cancel()

    def end(self) -> None:
        """Cancel what still runs, and end the thread. May be repeated."""
        with self._scheduling:
            if not self._is_ending:
                self._is_ending = True
                self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        with self._runner:
            self._runner.run(self._wait())

    async def _wait(self) -> None:
        await self._ended.wait()

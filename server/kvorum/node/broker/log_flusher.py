"""Makes finished segments durable, in a thread: Kafka's task flush-log."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from kvorum.node.events.log_event import LogEvent
from kvorum.storage.errors import StorageError
from kvorum.storage.unified_log import UnifiedLog

_log = logging.getLogger(__name__)


class LogFlusher:
    """Flushes one log after the other; a sync may take as long as the disk wants."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kvorum-log-flush")
        self._running: dict[UnifiedLog, asyncio.Future[None]] = {}

    def schedule(self, log: UnifiedLog) -> None:
        """Flush a log soon, unless that is to happen already."""
        if log not in self._running:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._thread, _flush, log)
            self._running[log] = future
            future.add_done_callback(lambda _: self._running.pop(log, None))

    async def shutdown(self) -> None:
        """Return when the flushes that were begun are over."""
        if self._running:
            await asyncio.wait(self._running.values())
        self._thread.shutdown()


def _flush(log: UnifiedLog) -> None:
    try:
        log.flush()
    except StorageError as error:
        if log.is_closed:
            # Its topic was deleted meanwhile.
            return
        # The log is unusable from here on, and refuses appends with this very error.
        _log.error(LogEvent("A log was not flushed", error=str(error)))

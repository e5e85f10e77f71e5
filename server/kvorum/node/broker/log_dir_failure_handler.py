"""Takes the failures of log directories to the event loop (Kafka's LogDirFailureHandler)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from kvorum.storage.errors import DiskError
from kvorum.storage.log_dir_failure_channel import LogDirFailureChannel


class LogDirFailureHandler:
    """Handles one failed directory after the other, whichever thread met the failure."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._failed: asyncio.Queue[tuple[Path, DiskError]] = asyncio.Queue()
        self.channel = LogDirFailureChannel(self._note)

    def _note(self, directory: Path, error: DiskError) -> None:
        self._loop.call_soon_threadsafe(self._failed.put_nowait, (directory, error))

    async def run(self, handle: Callable[[Path, DiskError], Awaitable[None]]) -> None:
        """Await `handle` for each failure, until cancelled."""
        while True:
            await handle(*await self._failed.get())

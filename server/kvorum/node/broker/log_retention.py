"""Removes, again and again, what logs need no longer: old segments and files marked as deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from kvorum.broker.partition import Partition
from kvorum.node.clock import Clock
from kvorum.node.events.log_event import LogEvent
from kvorum.storage.errors import StorageError

_log = logging.getLogger(__name__)
_MS_PER_S: Final = 1000
DELETION_CHECK_MS: Final = 5_000
"""The interval of looking for files whose delay (``file.delete.delay.ms``) is over."""


def removal_tasks(
    online: Callable[[], Iterable[Partition]], clock: Clock, *, retention_check_ms: int
) -> list[asyncio.Task[None]]:
    """Begin to remove what the logs of the partitions that are `online` no longer need."""
    return [
        asyncio.create_task(_delete_old_segments(online, clock, interval_ms=retention_check_ms)),
        asyncio.create_task(_remove_marked_files(online, clock)),
    ]


async def _delete_old_segments(
    online: Callable[[], Iterable[Partition]], clock: Clock, *, interval_ms: int
) -> None:
    """Apply retention; a log is changed only in the event loop, its owner."""
    while True:
        await asyncio.sleep(interval_ms / _MS_PER_S)
        for partition in online():
            try:
                for log in partition.logs:
                    log.delete_old_segments(now_ms=clock.wall_ms())
            except StorageError as error:
                _log.error(LogEvent("Old segments were not deleted", error=str(error)))
            await asyncio.sleep(0)


async def _remove_marked_files(online: Callable[[], Iterable[Partition]], clock: Clock) -> None:
    """Remove the files of deleted segments, and of those that were compacted."""
    while True:
        await asyncio.sleep(DELETION_CHECK_MS / _MS_PER_S)
        for log in [log for partition in online() for log in partition.logs]:
            try:
                log.remove_marked(now_ms=clock.wall_ms())
            except StorageError as error:
                _log.error(LogEvent("Deleted files were not removed", error=str(error)))

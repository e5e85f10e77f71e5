"""The wait for a slow disk, for coroutines that have appended to a log."""

from kvorum.node.coroutines import called_by
from kvorum.storage.log.disk_queue import DiskQueue


async def stored(writes: DiskQueue) -> None:
    """Wait until all writes so far are done, or will never be (`DiskQueue.has_failed`)."""
    if writes.is_behind:
        await called_by(writes.when_done)

"""The wait for a slow disk, for coroutines that have appended to a log."""

from functools import partial

from kvorum.node.coroutines import GiveUp, Take, Wait
from kvorum.storage.log.disk_queue import DiskQueue


async def stored(writes: DiskQueue) -> None:
    """Wait until all writes so far are done, or will never be (`DiskQueue.has_failed`)."""

    def begin(take: Take[None]) -> GiveUp:
        writes.when_done(partial(take, None))
        return _do_nothing

    if writes.is_behind:
        await Wait(begin)


def _do_nothing() -> None:
    pass

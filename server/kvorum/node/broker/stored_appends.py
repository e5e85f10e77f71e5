"""The wait for a slow disk, for coroutines that have appended to a log."""

from functools import partial

from kvorum.node.coroutines import GiveUp, Take, Wait
from kvorum.storage.log.local_log import LocalLog


async def stored(log: LocalLog) -> None:
    """Wait until all that was appended to a log is stored or lost (`LocalLog.has_lost_appends`)."""

    def begin(take: Take[None]) -> GiveUp:
        log.when_stored(partial(take, None))
        return _do_nothing

    if log.is_behind:
        await Wait(begin)


def _do_nothing() -> None:
    pass

"""Tasks that are ended by others, which may be ended meanwhile themselves."""

import asyncio

import pytest

from kvorum.node.tasks import cancel_and_wait, wait_for_end


async def test_a_caller_that_is_cancelled_does_not_go_on() -> None:
    """A broker that stopped waited forever for a task that had gone on to wait for metadata."""
    may_end = asyncio.Event()

    async def end_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()

    ending = asyncio.create_task(end_slowly())
    await asyncio.sleep(0)
    caller = asyncio.create_task(cancel_and_wait(ending))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not ending.done(), "the task is cancelled once, and ends as it wants to"
    may_end.set()
    await wait_for_end([ending])
    assert ending.cancelled()


async def test_a_task_that_has_failed_is_reported() -> None:
    async def fail() -> None:
        raise OSError("the disk")

    failing = asyncio.create_task(fail())
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="the disk"):
        await cancel_and_wait(failing, asyncio.create_task(asyncio.Event().wait()))


async def test_a_task_that_is_over_needs_no_waiting() -> None:
    over = asyncio.create_task(asyncio.sleep(0))
    await over
    await cancel_and_wait(over)
    await cancel_and_wait()

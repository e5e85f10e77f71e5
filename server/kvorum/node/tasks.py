"""The ends of asyncio's tasks and futures."""

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")


async def cancel_and_wait(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and return once all of them have ended; raise what one has failed with.

    The caller's own cancellation goes through. A caller that awaited a cancelled task and caught
    its CancelledError would catch its own as well, and go on as if it had not been asked to end.
    """
    for task in tasks:
        task.cancel()
    await wait_for_end(tasks)


async def wait_for_end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Return once tasks have ended, cancelled or not; raise what one has failed with."""
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


def settle(future: asyncio.Future[Result], result: Result | Exception) -> None:
    """Give a future its result, or the error in place of one, unless its caller has given up."""
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)

"""The ends of asyncio's tasks and futures."""

import asyncio
from collections.abc import Sequence
from typing import Any


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


def end(future: asyncio.Future[None], error: Exception | None) -> None:
    """End a future unless its caller has given up."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)

"""The ends of asyncio's tasks and futures, and the way to coroutines of `coroutines` and back."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from kvorum.node.coroutines import GiveUp, Take, Task, Wait

Result = TypeVar("Result")


async def cancel_and_wait(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and return once all of them have ended; raise what one has failed with.

    The caller's own cancellation goes through. A caller that awaited a cancelled task and caught
    its CancelledError would catch its own as well, and go on as if it had not been asked to end.
    """
    for task in tasks:
        task.cancel()
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


async def run(coroutine: Coroutine[Wait[Any], Any, Result]) -> Result:
    """Return the result of a coroutine of `coroutines`; it ends where its caller is cancelled."""
    future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    task = Task(coroutine, partial(settle, future))
    try:
        return await future
    finally:
        task.close()


def awaiting(work: Callable[[], Coroutine[Any, Any, Result]]) -> Wait[Result]:
    """Return the wait for a coroutine of asyncio, which is cancelled where the wait is given up."""

    def begin(take: Take[Result]) -> GiveUp:
        task = asyncio.get_running_loop().create_task(work())
        task.add_done_callback(partial(_tell, take))
        return partial(_cancel, task)

    return Wait(begin)


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


def _tell(take: Take[Any], task: asyncio.Task[Any]) -> None:
    if task.cancelled():
        return
    error = task.exception()
    if error is not None and not isinstance(error, Exception):
        raise error
    take(task.result() if error is None else error)

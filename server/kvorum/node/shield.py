"""Work that a request begins, and that its client's leaving does not end."""

import logging
from collections.abc import Coroutine
from typing import Any

from kvorum.metadata.api import RequestError
from kvorum.node.coroutines import Promise, Result, Task, Wait
from kvorum.node.errors import NotControllerError
from kvorum.node.runtime import Runtime

_log = logging.getLogger(__name__)


async def shield(runtime: Runtime, coroutine: Coroutine[Wait[Any], Any, Result]) -> Result:
    """Return the result of a coroutine that runs to its end, even if this wait for it is closed.

    A request is closed with its client's connection, but what it has begun to change is completed.
    An error that no client hears of any more is logged, unless it is a refusal.
    """
    ended: Promise[Result] = Promise(runtime)
    is_waited_for = True

    def end(result: Result | Exception) -> None:
        ended.settle(result)
        if is_waited_for or isinstance(result, RequestError | NotControllerError):
            return
        if isinstance(result, Exception):
            _log.error("The work for a client that has gone failed", exc_info=result)

    Task(coroutine, end)
    try:
        return await ended.result()
    finally:
        is_waited_for = False

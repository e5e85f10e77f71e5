"""Imports the modules that an active controller needs, while the controller is not active.

A node that starts does not wait for code that it may never need: handlers and messages are imported
with the first request for each. But a controller that takes over from a dead leader should not
begin with a twentieth of a second of imports while every client waits.
"""

from collections.abc import Callable, Iterator
from functools import partial

from kvorum.controller.requests import controller_apis as decided_apis
from kvorum.node.coroutines import sleep
from kvorum.node.handlers.registry import controller_apis
from kvorum.node.runtime import Runtime
from kvorum.wire.apis import METADATA_RECORDS, record_class

IDLE_MS_BEFORE = 500
"""The time left to the start of this node, and of others on the machine."""
PAUSE_MS = 5
"""The time left to other work after each import, which takes about half as long."""


async def warm_up(runtime: Runtime) -> None:
    """Import one module after the other."""
    await sleep(runtime, IDLE_MS_BEFORE)
    for step in warming_steps():
        step()
        await sleep(runtime, PAUSE_MS)


def warming_steps() -> Iterator[Callable[[], object]]:
    """Yield a step for each import, the most frequent APIs first."""
    yield from decided_apis().values()
    for api in controller_apis().values():
        yield api.load
    for key in METADATA_RECORDS:
        yield partial(record_class, key)

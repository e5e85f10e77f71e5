"""Imports what an active controller needs, while it is not one and has nothing else to do.

A node that starts does not wait for code that it may never need: handlers and messages are imported
with the first request for each. But a controller that takes over from a leader that died should not
begin with a twentieth of a second of imports while everybody waits.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from kvorum.controller import requests
from kvorum.controller.refusals import REFUSALS
from kvorum.node.handlers.registry import controller_apis
from kvorum.wire.apis import METADATA_RECORDS, record_class, request_class, response_class

IDLE_SECONDS_BEFORE = 0.5
"""Left to the start of the node, and of others on the machine."""
PAUSE_SECONDS = 0.005
"""Left to everything else after each import, which takes about half as long."""


async def warm_up(
    *,
    wait_seconds: float = IDLE_SECONDS_BEFORE,
    pause_seconds: float = PAUSE_SECONDS,
) -> None:
    """Import one module after the other."""
    await asyncio.sleep(wait_seconds)
    for step in warming_steps():
        step()
        await asyncio.sleep(pause_seconds)


def warming_steps() -> Iterator[Callable[[], object]]:
    """Yield everything to import, what is asked for most first."""
    for key in requests.HANDLERS:
        yield partial(requests.handler_of, key)
    for module in _unique(module for module, _ in REFUSALS.values()):
        yield partial(importlib.import_module, f"kvorum.controller.refusals.{module}")
    for key, api in controller_apis().items():
        yield partial(request_class, key)
        yield partial(response_class, key)
        yield api.find_handler
    for key in METADATA_RECORDS:
        yield partial(record_class, key)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))

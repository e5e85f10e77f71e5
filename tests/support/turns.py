"""Turns of an event loop: what could happen in no time does within them."""

import asyncio

TURNS = 50


async def let_others_run() -> None:
    """Give every task that is ready its turns, and what comes of them theirs.

    What is still not so afterwards waits for something else.
    """
    for _ in range(TURNS):
        await asyncio.sleep(0)

"""A process that stood still notices that, before anything that ran out meanwhile is acted on."""

import asyncio
import time

from tests.support.waiting import let_others_run

from kvorum.node.raft.raft_node import BEAT_MS, StallWatch

STALL_SECONDS = 0.5


async def test_a_stall_is_reported_before_the_timers_that_ran_out_in_it() -> None:
    told: list[object] = []
    over = asyncio.Event()
    watch = StallWatch(told.append)
    loop = asyncio.get_running_loop()
    loop.call_later(STALL_SECONDS / 2, told.append, "a timer")
    loop.call_later(STALL_SECONDS, over.set)
    # The pause of this test: nothing of this process runs meanwhile.
    time.sleep(STALL_SECONDS)  # noqa: ASYNC251 - as said
    await over.wait()
    watch.stop()
    stall_ms, *rest = told
    assert isinstance(stall_ms, float)
    assert stall_ms >= STALL_SECONDS * 1000 - BEAT_MS - 1
    assert rest[0] == "a timer"


async def test_nothing_is_reported_after_the_end() -> None:
    told: list[float] = []
    watch = StallWatch(told.append)
    watch.stop()
    time.sleep(STALL_SECONDS)  # noqa: ASYNC251 - as above
    await let_others_run()
    assert told == []

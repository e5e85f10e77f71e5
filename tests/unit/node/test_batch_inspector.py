"""Batches that are looked at in threads: a giant holds up neither others nor the node's end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from typing import Any, cast

import pytest
from tests.support.waiting import PATIENCE_S

from kvorum.broker.partition import Partition
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker.batch_inspector import (
    GIANT_BYTES_MIN,
    GIANT_RECORDS_MIN,
    THREAD_COUNT,
    BatchInspector,
)
from kvorum.node.clock import SystemClock
from kvorum.node.tasks import cancel_and_wait, run
from kvorum.storage.topic_log.log_validator import InspectedBatch
from kvorum.wire.records import BatchOptions, Compression, RecordBatch, RecordData, build_batch
from kvorum.wire.records.batch import batch_at
from kvorum.wire.records.size_check import SizeCheck

LARGE = 2**20
"""The size of records that the event loop leaves to a thread."""
TAKEN = InspectedBatch(bytearray(), -1, is_rewritten=False)


class PretendedPartition:
    """A partition whose batches are looked at by a function."""

    def __init__(self, look: Callable[[SizeCheck], None]) -> None:
        self._look = look

    def inspection(self, _: RecordBatch, **__: Any) -> Callable[[SizeCheck], InspectedBatch]:
        def inspect(check_size: SizeCheck) -> InspectedBatch:
            self._look(check_size)
            return TAKEN

        return inspect


def batch() -> RecordBatch:
    options = BatchOptions(compression=Compression.ZSTD)
    found = batch_at(memoryview(build_batch([RecordData(bytes(LARGE))], options)), 0)
    assert found is not None
    return found


@pytest.fixture
async def threads() -> AsyncIterator[AsyncioRuntime]:
    runtime = AsyncioRuntime(SystemClock(), thread_name="batches", thread_count=THREAD_COUNT)
    with closing(runtime):
        yield runtime


@pytest.fixture
def inspector(threads: AsyncioRuntime) -> BatchInspector:
    return BatchInspector(threads)


async def inspected(
    inspector: BatchInspector, look: Callable[[SizeCheck], None], sent: RecordBatch
) -> InspectedBatch | None:
    partition = cast("Partition", PretendedPartition(look))
    return await run(inspector.inspect(partition, sent, required_acks=1, wall_ms=0))


@pytest.mark.parametrize("record_count", [1, GIANT_RECORDS_MIN])
async def test_a_giant_is_not_waited_for_by_others(
    inspector: BatchInspector, record_count: int
) -> None:
    is_begun = threading.Event()
    is_other_done = threading.Event()

    def look_at_giant(check_size: SizeCheck) -> None:
        check_size(GIANT_BYTES_MIN)
        is_begun.set()
        assert is_other_done.wait(PATIENCE_S)

    giant = batch()._replace(record_count=record_count)
    looking = asyncio.create_task(inspected(inspector, look_at_giant, giant))
    assert await asyncio.to_thread(is_begun.wait, PATIENCE_S)
    assert await inspected(inspector, lambda check_size: check_size(LARGE), batch()) == TAKEN
    is_other_done.set()
    assert await looking == TAKEN


async def test_a_giant_that_is_looked_at_does_not_keep_the_node_from_ending(
    inspector: BatchInspector,
) -> None:
    is_begun = threading.Event()
    is_over = threading.Event()

    def look_for_ever(check_size: SizeCheck) -> None:
        try:
            while True:
                check_size(GIANT_BYTES_MIN)
                is_begun.set()
        finally:
            if is_begun.is_set():
                is_over.set()

    looking = asyncio.create_task(inspected(inspector, look_for_ever, batch()))
    assert await asyncio.to_thread(is_begun.wait, PATIENCE_S)
    inspector.close()
    assert await asyncio.to_thread(is_over.wait, PATIENCE_S)
    await cancel_and_wait(looking)


async def test_at_the_end_what_is_looked_at_is_not_answered_and_nothing_else_is_begun(
    inspector: BatchInspector, threads: AsyncioRuntime
) -> None:
    is_begun = threading.Event()
    may_end = threading.Event()
    is_idle = asyncio.Event()
    begun: list[str] = []

    def look_without_a_check(_: SizeCheck) -> None:
        is_begun.set()
        assert may_end.wait(PATIENCE_S)

    def refuse(_: SizeCheck) -> None:
        begun.append("another")
        raise ValueError("a batch that is not valid")

    requests = [
        asyncio.create_task(inspected(inspector, look, batch()))
        for look in (look_without_a_check, refuse)
    ]
    assert await asyncio.to_thread(is_begun.wait, PATIENCE_S)
    inspector.close()
    requests.append(asyncio.create_task(inspected(inspector, refuse, batch())))
    may_end.set()
    threads.when_idle(is_idle.set)
    await is_idle.wait()
    await asyncio.sleep(0)
    assert not any(request.done() for request in requests)
    assert begun == []
    await cancel_and_wait(*requests)

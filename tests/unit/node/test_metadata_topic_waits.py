"""What a broker that may be behind tells a consumer, and how readers take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.waiting import let_others_run

from kvorum.node.broker.metadata_fetch import MetadataFetchParams, fetch
from kvorum.node.broker.metadata_topic import MetadataTopic
from kvorum.node.clock import SystemClock
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import CommittedBatch, RaftNode
from kvorum.raft.config import RaftConfig
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import build_data_batch

pytestmark = pytest.mark.asyncio

FETCH_TIMEOUT_MS = 50
NOW_MS = 1_700_000_000_000


class PlayedLog:
    """A log of one record per batch, in memory; `end_offset` counts what is not committed too."""

    def __init__(self, end_offset: int) -> None:
        self.start_offset = 0
        self.end_offset = end_offset
        self.reads = 0

    def read(self, offset: int, max_bytes: int, *, end_offset: int) -> memoryview:
        self.reads += 1
        batches = [
            build_data_batch([b"value"], base_offset=one, epoch=1, timestamp_ms=NOW_MS)
            for one in range(offset, end_offset)
        ]
        count = max(max_bytes // len(batches[0]), 1) if batches else 0
        return memoryview(b"".join(batches[:count]))


class Broker:
    """A topic over a played log and a replica whose contact with the leader is given."""

    def __init__(self, *, committed: int, end: int) -> None:
        self.log = PlayedLog(end)
        self.replica = SimpleNamespace(
            log=self.log,
            epoch=1,
            is_in_touch=True,
            settings=SimpleNamespace(raft=RaftConfig(fetch_timeout_ms=FETCH_TIMEOUT_MS)),
        )
        self.loader = MetadataLoader()
        self.commit_to(committed)
        self.topic = MetadataTopic(cast("RaftNode", self.replica), self.loader, SystemClock())

    def commit_to(self, offset: int) -> None:
        self.log.end_offset = max(self.log.end_offset, offset)
        batch = CommittedBatch(
            base_offset=offset - 1,
            last_offset=offset - 1,
            epoch=1,
            append_timestamp_ms=NOW_MS,
            values=(),
            is_control=True,
            size_bytes=1,
        )
        self.loader.commit([batch])


def wish(offset: int, *, min_bytes: int = 0, max_wait_ms: int = 0) -> MetadataFetchParams:
    return MetadataFetchParams(
        offset=offset, max_bytes=10_000, min_bytes=min_bytes, max_wait_ms=max_wait_ms
    )


async def test_what_is_not_committed_is_not_read_and_is_no_error() -> None:
    broker = Broker(committed=3, end=5)
    for offset, size_is_zero in ((2, False), (3, True), (5, True)):
        got = await fetch(broker.topic, wish(offset))
        assert (got.error, got.high_watermark) == (ErrorCode.NONE, 3)
        assert (len(got.records) == 0) is size_is_zero


async def test_a_place_that_the_quorum_does_not_have() -> None:
    broker = Broker(committed=3, end=5)
    assert (await fetch(broker.topic, wish(6))).error is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_broker_out_of_touch_does_not_know_what_others_have() -> None:
    broker = Broker(committed=3, end=5)
    broker.replica.is_in_touch = False
    assert (await fetch(broker.topic, wish(6))).error is ErrorCode.OFFSET_NOT_AVAILABLE


async def test_neither_does_one_whose_leader_changed_meanwhile() -> None:
    broker = Broker(committed=3, end=5)
    answer = asyncio.create_task(fetch(broker.topic, wish(6)))
    await asyncio.sleep(0)
    broker.replica.epoch = 2
    assert (await answer).error is ErrorCode.OFFSET_NOT_AVAILABLE


async def test_a_broker_that_is_a_moment_behind_answers_when_it_has_caught_up() -> None:
    broker = Broker(committed=3, end=5)
    answer = asyncio.create_task(fetch(broker.topic, wish(6)))
    await asyncio.sleep(0)
    broker.commit_to(7)
    got = await answer
    assert (got.error, got.high_watermark, len(got.records) > 0) == (ErrorCode.NONE, 7, True)


async def test_the_log_being_replaced_by_a_snapshot_ends_a_wait() -> None:
    broker = Broker(committed=3, end=3)
    answer = asyncio.create_task(fetch(broker.topic, wish(3, min_bytes=1, max_wait_ms=60_000)))
    await asyncio.sleep(0)
    broker.commit_to(9)
    assert (await answer).high_watermark == 9


async def test_after_each_read_other_work_gets_its_turn() -> None:
    broker = Broker(committed=3, end=3)
    reads_by_turn: list[int] = []

    async def other_work() -> None:
        for _ in range(20):
            reads_by_turn.append(broker.log.reads)
            await asyncio.sleep(0)

    await asyncio.gather(*(fetch(broker.topic, wish(0)) for _ in range(10)), other_work())
    assert broker.log.reads == 10
    assert max(_steps(reads_by_turn)) == 1


def _steps(counts: Sequence[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(counts)]


async def test_all_who_wait_are_answered_and_nothing_is_left_waiting() -> None:
    broker = Broker(committed=3, end=3)
    waits = [
        asyncio.create_task(fetch(broker.topic, wish(3, min_bytes=1, max_wait_ms=60_000)))
        for _ in range(50)
    ]
    gone = waits.pop()
    await let_others_run()
    gone.cancel()
    await let_others_run()
    assert len(vars(broker.topic)["_waiting"]) == len(waits)
    broker.commit_to(4)
    answers = await asyncio.gather(*waits)
    assert all(len(answer.records) > 0 for answer in answers)
    assert not vars(broker.topic)["_waiting"]

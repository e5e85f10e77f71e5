"""The answers of a broker that may be behind, and the turns of its readers."""

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

from tests.support.waiting import let_others_run

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.log_read import LogReadInfo
from kvorum.metadata.api import RequestError
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker.delayed_fetch import FetchResult, fetch_messages
from kvorum.node.broker.fetch_params import FetchParams, PartitionFetch
from kvorum.node.broker.metadata_topic import MetadataTopic
from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.clock import SystemClock
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import CommittedBatch, RaftNode
from kvorum.node.tasks import run
from kvorum.raft.config import RaftConfig
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import build_data_batch

FETCH_TIMEOUT_MS = 50
NOW_MS = 1_700_000_000_000
MAX_BYTES = 10_000


class PlayedLog:
    """A log of one record per batch, in memory; its end counts what is not committed too."""

    def __init__(self, end_offset: int) -> None:
        self.log_start_offset = 0
        self.log_end_offset = end_offset
        self.reads = 0

    @property
    def local_log(self) -> "PlayedLog":
        """The log below, which this log plays too."""
        return self

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
        self.runtime = runtime = AsyncioRuntime(SystemClock(), thread_name="requests")
        self.purgatory = DelayedOperationPurgatory(runtime)
        self.topic = MetadataTopic(cast("RaftNode", self.replica), self.loader, runtime)

    def commit_to(self, offset: int) -> None:
        self.log.log_end_offset = max(self.log.log_end_offset, offset)
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

    async def fetch(self, offset: int, *, min_bytes: int = 0, max_wait_ms: int = 0) -> FetchResult:
        return await run(self._fetch(offset, min_bytes=min_bytes, max_wait_ms=max_wait_ms))

    async def _fetch(self, offset: int, *, min_bytes: int, max_wait_ms: int) -> FetchResult:
        """Do what the handler does for one consumer."""
        try:
            await self.topic.wait_to_read(offset)
        except RequestError as error:
            return FetchResult(None, error.code)
        fetches = [PartitionFetch(self.topic, offset, MAX_BYTES, NO_EPOCH)]
        params = FetchParams(max_wait_ms, min_bytes, MAX_BYTES, IsolationLevel.READ_UNCOMMITTED)
        (result,) = await fetch_messages(
            fetches, params, self.purgatory, BrokerTopicStats(), self.runtime
        )
        return result


def read_by(result: FetchResult) -> LogReadInfo:
    assert result.error is ErrorCode.NONE
    assert result.read is not None
    return result.read


async def test_what_is_not_committed_is_not_read_and_is_not_an_error() -> None:
    broker = Broker(committed=3, end=5)
    for offset, size_is_zero in ((2, False), (3, True), (5, True)):
        got = read_by(await broker.fetch(offset))
        assert got.high_watermark == 3
        assert (len(got.records) == 0) is size_is_zero


async def test_a_fetch_from_what_is_not_committed_waits_until_it_is() -> None:
    broker = Broker(committed=3, end=5)
    answer = asyncio.create_task(broker.fetch(5, min_bytes=1, max_wait_ms=60_000))
    await let_others_run()
    assert not answer.done()
    broker.commit_to(6)
    assert len(read_by(await answer).records) > 0


async def test_a_fetch_waits_for_no_more_than_a_response_holds() -> None:
    broker = Broker(committed=300, end=300)
    got = read_by(await broker.fetch(0, min_bytes=10 * MAX_BYTES, max_wait_ms=60_000))
    assert 0 < len(got.records) < MAX_BYTES


async def test_a_place_that_the_quorum_does_not_have() -> None:
    assert (await Broker(committed=3, end=5).fetch(6)).error is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_broker_out_of_touch_does_not_know_what_others_have() -> None:
    broker = Broker(committed=3, end=5)
    broker.replica.is_in_touch = False
    assert (await broker.fetch(6)).error is ErrorCode.OFFSET_NOT_AVAILABLE


async def test_neither_does_one_whose_leader_changed_meanwhile() -> None:
    broker = Broker(committed=3, end=5)
    answer = asyncio.create_task(broker.fetch(6))
    await asyncio.sleep(0)
    broker.replica.epoch = 2
    assert (await answer).error is ErrorCode.OFFSET_NOT_AVAILABLE


async def test_a_broker_that_is_a_moment_behind_answers_when_it_has_caught_up() -> None:
    broker = Broker(committed=3, end=5)
    answer = asyncio.create_task(broker.fetch(6))
    await asyncio.sleep(0)
    broker.commit_to(7)
    got = read_by(await answer)
    assert (got.high_watermark, len(got.records) > 0) == (7, True)


async def test_the_log_being_replaced_by_a_snapshot_ends_a_wait() -> None:
    broker = Broker(committed=3, end=3)
    answer = asyncio.create_task(broker.fetch(3, min_bytes=1, max_wait_ms=60_000))
    await asyncio.sleep(0)
    broker.commit_to(9)
    assert read_by(await answer).high_watermark == 9


async def test_after_each_read_other_work_gets_its_turn() -> None:
    broker = Broker(committed=3, end=3)
    reads_by_turn: list[int] = []

    async def other_work() -> None:
        for _ in range(20):
            reads_by_turn.append(broker.log.reads)
            await asyncio.sleep(0)

    await asyncio.gather(*(broker.fetch(0) for _ in range(10)), other_work())
    assert broker.log.reads == 10
    assert max(later - earlier for earlier, later in pairwise(reads_by_turn)) == 1


async def test_all_who_wait_are_answered_and_nothing_is_left_waiting() -> None:
    broker = Broker(committed=3, end=3)
    waits = [
        asyncio.create_task(broker.fetch(3, min_bytes=1, max_wait_ms=60_000)) for _ in range(50)
    ]
    gone = waits.pop()
    await let_others_run()
    gone.cancel()
    await let_others_run()
    watchers = vars(broker.topic.watchers)["_watchers"]
    assert (broker.purgatory.delayed_count, len(watchers)) == (len(waits), len(waits))
    broker.commit_to(4)
    assert all(len(read_by(answer).records) > 0 for answer in await asyncio.gather(*waits))
    assert broker.purgatory.delayed_count == len(vars(broker.topic.watchers)["_watchers"]) == 0

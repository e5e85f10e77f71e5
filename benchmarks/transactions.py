"""Transactions: how many in a second, how soon they can be read, what their ids take."""

import asyncio
import statistics
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Self

from benchmarks.data.asking import Connection, check, until_coordinated
from benchmarks.data.brokers import RunningBroker, broker
from benchmarks.node_start import Candidate, kafka_nodes, kvorum_node
from benchmarks.report import Row

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kvorum.wire.records import BatchOptions, RecordData, build_batch

ROUNDS: Final = 3
PRODUCERS: Final = 10
TRANSACTIONS: Final = 200
"""The transactions of each producer in a round."""
READ_BACK: Final = 50
IDS: Final = 10_000
IDS_AT_ONCE: Final = 50
PARTITIONS: Final = 10
TOPICS: Final = tuple(f"transacted-{number}" for number in range(PARTITIONS))
GROUP: Final = "transacting"
OF_TRANSACTIONS: Final = 1
TIMEOUT_MS: Final = 60_000
RETRY_S: Final = 0.001
SETTINGS: Final = {
    "transaction.state.log.num.partitions": "10",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.num.partitions": "1",
}
VALUE: Final = b"v" * 100


@dataclass
class Figures:
    """The figures of one candidate by what was measured, one for each round."""

    per_s: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    readable_ms: list[float] = field(default_factory=list[float])
    ids_mib: list[float] = field(default_factory=list[float])


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; the numbers of transactions and ids are divided."""
    candidates = [(kvorum_node(), Figures()), (kafka_nodes()[0], Figures())]
    for turn in range(ROUNDS):
        for candidate, figures in candidates if turn % 2 == 0 else reversed(candidates):
            with _started(candidate) as running:
                asyncio.run(_measure(running, figures, divisor))
    (_, ours), (peer, theirs) = candidates
    median = statistics.median
    found = [
        Row(what, peer.name, median(mine), median(theirs.per_s[what]), "t/s", is_rate=True)
        for what, mine in ours.per_s.items()
    ]
    found.append(
        Row(
            "from EndTxn to a record that is read",
            peer.name,
            median(ours.readable_ms),
            median(theirs.readable_ms),
            "ms",
        )
    )
    found.append(
        Row(
            f"memory of {IDS // divisor:,} transactional ids",
            peer.name,
            median(ours.ids_mib),
            median(theirs.ids_mib),
            "MiB",
        )
    )
    return found


@contextmanager
def _started(candidate: Candidate) -> Generator[RunningBroker]:
    with broker(candidate, SETTINGS) as running:
        for topic in TOPICS:
            running.create_topic(topic)
        yield running


async def _measure(running: RunningBroker, figures: Figures, divisor: int) -> None:
    count = max(1, TRANSACTIONS // divisor)
    kinds: Sequence[tuple[str, Sequence[str], bool]] = (
        ("transactions of a record", TOPICS[:1], False),
        (f"transactions in {PARTITIONS} partitions", TOPICS, False),
        ("transactions with offsets", TOPICS[:1], True),
    )
    names = [f"producer-{number}" for number in range(PRODUCERS)]
    producers = [await TransactionalProducer.begin(running.servers, name) for name in names]
    await asyncio.gather(*(one.run(1, TOPICS, has_offsets=True) for one in producers))
    for what, topics, has_offsets in kinds:
        before = time.perf_counter()
        await asyncio.gather(
            *(one.run(count, topics, has_offsets=has_offsets) for one in producers)
        )
        took_s = time.perf_counter() - before
        figures.per_s.setdefault(what, []).append(PRODUCERS * count / took_s)
    times = [await _readable_ms(running.servers, producers[0]) for _ in range(READ_BACK)]
    figures.readable_ms.append(statistics.median(times))
    before_mib = running.memory_mib
    await _begin_ids(running.servers, max(1, IDS // divisor))
    figures.ids_mib.append(max(running.memory_mib - before_mib, 0.1))


async def _begin_ids(servers: str, count: int) -> None:
    for first in range(0, count, IDS_AT_ONCE):
        names = [f"id-{number}" for number in range(first, min(first + IDS_AT_ONCE, count))]
        producers = await asyncio.gather(
            *(TransactionalProducer.begin(servers, name) for name in names)
        )
        for producer in producers:
            producer.connection.close()


async def _readable_ms(servers: str, producer: "TransactionalProducer") -> float:
    """Return how long a record takes to be read by a consumer that waits for it."""
    (topic,) = TOPICS[:1]
    reader = await Connection.to(servers)
    offset = await _end_offset(reader, topic)
    await producer.produce(topic)
    wish = FetchRequest.FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(topic, partitions=[wish])]
    fetch = FetchRequest(
        max_wait_ms=5_000, min_bytes=1, max_bytes=1 << 20, isolation_level=1, topics=topics
    )
    waiting = asyncio.ensure_future(reader.ask(fetch, FetchResponse, 12))
    await asyncio.sleep(0)
    before = time.perf_counter()
    await producer.end()
    answered = await waiting
    took_s = time.perf_counter() - before
    assert answered.responses[0].partitions[0].records
    reader.close()
    return took_s * 1000


async def _end_offset(reader: Connection, topic: str) -> int:
    wish = ListOffsetsRequest.ListOffsetsPartition(0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(topic, [wish])])
    answered = await reader.ask(request, ListOffsetsResponse, 6)
    return answered.topics[0].partitions[0].offset


class TransactionalProducer:
    """A producer with one request at a time, whose transactions have an epoch each."""

    def __init__(self, connection: Connection, name: str, producer_id: int, epoch: int) -> None:
        self.connection = connection
        self._name = name
        self._producer_id = producer_id
        self._epoch = epoch
        self._sequences: dict[str, int] = {}

    @classmethod
    async def begin(cls, servers: str, name: str) -> Self:
        connection = await Connection.to(servers)
        begun = InitProducerIdResponse()

        async def find() -> int:
            request = FindCoordinatorRequest(name, OF_TRANSACTIONS)
            return (await connection.ask(request, FindCoordinatorResponse, 3)).error_code

        async def init() -> int:
            nonlocal begun
            request = InitProducerIdRequest(name, TIMEOUT_MS)
            begun = await connection.ask(request, InitProducerIdResponse, 5)
            return begun.error_code

        await until_coordinated(find)
        await until_coordinated(init)
        return cls(connection, name, begun.producer_id, begun.producer_epoch)

    async def run(self, count: int, topics: Sequence[str], *, has_offsets: bool) -> None:
        for _ in range(count):
            for topic in topics:
                await self.produce(topic)
            if has_offsets:
                await self._commit_offset()
            await self.end()

    async def produce(self, topic: str) -> None:
        """Append a record; while the transaction before is not at its end, try again."""
        sequence = self._sequences.get(topic, 0)
        options = BatchOptions(
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        records = bytes(build_batch([RecordData(VALUE, None, 1)], options))
        data = ProduceRequest.TopicProduceData(
            topic, partition_data=[ProduceRequest.PartitionProduceData(0, records)]
        )
        request = ProduceRequest(self._name, -1, 5_000, [data])

        async def ask() -> int:
            answered = await self.connection.ask(request, ProduceResponse, 12)
            return answered.responses[0].partition_responses[0].error_code

        code = await ask()
        while code == ErrorCode.CONCURRENT_TRANSACTIONS:
            await asyncio.sleep(RETRY_S)
            code = await ask()
        check(code)
        self._sequences[topic] = sequence + 1

    async def _commit_offset(self) -> None:
        offsets = [TxnOffsetCommitRequestPartition(0, 1)]
        request = TxnOffsetCommitRequest(
            self._name,
            GROUP,
            self._producer_id,
            self._epoch,
            topics=[TxnOffsetCommitRequestTopic(TOPICS[0], partitions=offsets)],
        )

        async def ask() -> int:
            answered = await self.connection.ask(request, TxnOffsetCommitResponse, 5)
            return answered.topics[0].partitions[0].error_code

        await self._find_group()
        await until_coordinated(ask)

    async def _find_group(self) -> None:
        async def find() -> int:
            request = FindCoordinatorRequest(GROUP)
            return (await self.connection.ask(request, FindCoordinatorResponse, 3)).error_code

        if GROUP not in self._sequences:
            await until_coordinated(find)
            self._sequences[GROUP] = 0

    async def end(self) -> None:
        """Commit; the next transaction has the epoch of the answer."""
        request = EndTxnRequest(self._name, self._producer_id, self._epoch, True)
        answered = await self.connection.ask(request, EndTxnResponse, 5)
        check(answered.error_code)
        if answered.producer_epoch != self._epoch:
            self._sequences = {name: 0 for name in self._sequences if name == GROUP}
        self._producer_id = answered.producer_id
        self._epoch = answered.producer_epoch

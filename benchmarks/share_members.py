"""A share group whose members fetch records and accept them, each with the next fetch."""

import asyncio
import statistics
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import uuid4

from benchmarks.data.asking import Connection, check, until_coordinated
from benchmarks.data.brokers import broker
from benchmarks.node_start import Candidate, kafka_nodes, kvorum_node
from benchmarks.report import Row
from confluent_kafka import Producer

from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

MEMBERS: Final = 8
PARTITIONS: Final = 4
RECORD: Final = bytes(100)
MANY, FEW = 500, 10
"""The most records of a fetch: those of a stock client, and of one that is slow with each."""
RECORDS: Final[Mapping[int, int]] = MappingProxyType({MANY: 200_000, FEW: 20_000})
"""The records of a measurement, by the most of a fetch."""
ROUNDS: Final = 3
TOPIC, GROUP = "shared", "sharing"
WAIT_MS: Final = 500
MAX_BYTES: Final = 50_000_000
SETTINGS: Final[Mapping[str, str]] = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
ACCEPT: Final = 1
PRODUCE_S_MAX: Final = 120.0
WHAT: Final = f"records that {MEMBERS} members of a share group fetch and accept, {{}} at a time"
_FIND_VERSION: Final = 6
_METADATA_VERSION: Final = 12
_FETCH_VERSION: Final = 2
_MODES: Final[Mapping[int, int]] = MappingProxyType({MANY: 0, FEW: 1})
"""The mode of acquisition, by the most records: whole batches by default, or strictly so many."""
_INITIALIZE_VERSION: Final = 0
_FIRST_STATE_EPOCH: Final = 1


def rows(divisor: int) -> list[Row]:
    """Return the rows of the report; the number of records is divided."""
    ours = kvorum_node()
    theirs = kafka_nodes()[0]
    rates: dict[tuple[str, int], list[float]] = {}
    for turn in range(ROUNDS):
        for candidate in (ours, theirs) if turn % 2 == 0 else (theirs, ours):
            for at_a_time, count in RECORDS.items():
                rate = _rate(candidate, count // divisor, at_a_time)
                rates.setdefault((candidate.name, at_a_time), []).append(rate)
    return [
        Row(
            WHAT.format(at_a_time),
            theirs.name,
            statistics.median(rates[ours.name, at_a_time]),
            statistics.median(rates[theirs.name, at_a_time]),
            "r/s",
            is_rate=True,
        )
        for at_a_time in RECORDS
    ]


def _rate(candidate: Candidate, count: int, at_a_time: int) -> float:
    with broker(candidate, SETTINGS) as running:
        running.create_topic(TOPIC, partitions=PARTITIONS)
        _produce(running.servers, count)
        return asyncio.run(_shared(running.servers, count, at_a_time))


def _produce(servers: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": count})
    for number in range(count):
        producer.produce(TOPIC, RECORD, partition=number % PARTITIONS)
    if producer.flush(PRODUCE_S_MAX):
        raise TimeoutError("not all records are acknowledged")


async def _shared(servers: str, count: int, at_a_time: int) -> float:
    """Have all members fetch and accept until all records are accepted; return those a second."""
    first = await Connection.to(servers)
    topic_id = await _begin_group(first)
    members = [
        ShareMember(await Connection.to(servers), topic_id, at_a_time) for _ in range(MEMBERS)
    ]
    left = count
    began = time.perf_counter()

    async def work(member: ShareMember) -> None:
        nonlocal left
        while left > 0:
            acquired = await member.fetch()
            left -= acquired
        await member.fetch()

    await asyncio.gather(*map(work, members))
    elapsed_s = time.perf_counter() - began
    for member in members:
        member.connection.close()
    first.close()
    return count / elapsed_s


async def _begin_group(connection: Connection) -> bytes:
    """Have the group begin at the start of every partition; return the topic's id."""
    described = await connection.ask(
        MetadataRequest([MetadataRequest.MetadataRequestTopic(name=TOPIC)]),
        MetadataResponse,
        _METADATA_VERSION,
    )
    topic_id = described.topics[0].topic_id
    key = SharePartitionKey(GROUP, topic_id, 0).coordinator_key

    async def find() -> int:
        request = FindCoordinatorRequest(
            key_type=CoordinatorType.SHARE.value, coordinator_keys=[key]
        )
        found = await connection.ask(request, FindCoordinatorResponse, _FIND_VERSION)
        return found.coordinators[0].error_code

    async def initialize() -> int:
        request = InitializeShareGroupStateRequest
        parts = [request.PartitionData(index, _FIRST_STATE_EPOCH, 0) for index in range(PARTITIONS)]
        answered = await connection.ask(
            request(GROUP, [request.InitializeStateData(topic_id, parts)]),
            InitializeShareGroupStateResponse,
            _INITIALIZE_VERSION,
        )
        return max(one.error_code for one in answered.results[0].partitions)

    await until_coordinated(find)
    await until_coordinated(initialize)
    return topic_id


class ShareMember:
    """A member that accepts with each fetch what the one before has returned."""

    def __init__(self, connection: Connection, topic_id: bytes, at_a_time: int) -> None:
        self.connection = connection
        self._at_a_time = at_a_time
        self._topic_id = topic_id
        self._member_id = str(uuid4())
        self._epoch = 0
        self._acquired: dict[int, list[tuple[int, int]]] = {}

    async def fetch(self) -> int:
        """Accept, fetch, and return how many records were acquired."""
        request = ShareFetchRequest
        accepted, self._acquired = self._acquired, {}
        indexes = range(PARTITIONS) if self._epoch == 0 else accepted
        parts = [
            request.FetchPartition(
                index,
                acknowledgement_batches=[
                    request.AcknowledgementBatch(first, last, [ACCEPT])
                    for first, last in accepted.get(index, ())
                ],
            )
            for index in indexes
        ]
        answered = await self.connection.ask(
            request(
                GROUP,
                self._member_id,
                self._epoch,
                WAIT_MS,
                1,
                MAX_BYTES,
                self._at_a_time,
                self._at_a_time,
                share_acquire_mode=_MODES[self._at_a_time],
                topics=[request.FetchTopic(self._topic_id, parts)] if parts else [],
            ),
            ShareFetchResponse,
            _FETCH_VERSION,
        )
        check(answered.error_code)
        self._epoch += 1
        count = 0
        for topic in answered.responses:
            for one in topic.partitions:
                check(one.error_code)
                check(one.acknowledge_error_code)
                batches = [
                    (batch.first_offset, batch.last_offset) for batch in one.acquired_records
                ]
                self._acquired[one.partition_index] = batches
                count += sum(last - first + 1 for first, last in batches)
        return count

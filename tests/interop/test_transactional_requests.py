"""Random requests of transactions beside a real broker: equal answers, and equal logs.

Neither broker asks a coordinator (``transaction.partition.verification.enable``): the script writes
the markers, in every version, for whatever producer and epoch.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias, cast

import pytest
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.records import BatchOptions, RecordData, build_batch, read_batches

STEPS: Final = int(os.environ.get("KVORUM_TRANSACTION_STEPS", "1500"))
SEED: Final = int(os.environ.get("KVORUM_TRANSACTION_SEED", "1"))
TOPIC: Final = "data"
GROUP: Final = "group"
PARTITIONS: Final = 2
OFFSETS: Final = "__consumer_offsets"
SETTINGS: Final = {
    "transaction.partition.verification.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
PRODUCERS: Final[tuple[int, ...]] = (1000, 1001, 1002)
Answer: TypeAlias = Any
CODES: Final = {
    "produce": "NONE OUT_OF_ORDER_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE"
    " TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "end": "NONE UNKNOWN_TOPIC_OR_PARTITION INVALID_PRODUCER_EPOCH TRANSACTION_COORDINATOR_FENCED",
    "commit": "NONE UNKNOWN_TOPIC_OR_PARTITION OFFSET_METADATA_TOO_LARGE UNKNOWN_MEMBER_ID"
    " INVALID_GROUP_ID INVALID_PRODUCER_EPOCH",
}
SEEN: Final = {(kind, ErrorCode[name]) for kind, names in CODES.items() for name in names.split()}
"""Events that have to happen at least once, or the script says little."""
Step: TypeAlias = Callable[[RawClient], Answer]


class Producer(NamedTuple):
    """The state of a producer, as the script believes."""

    epoch: int = 0
    sequences: tuple[int, ...] = (0,) * PARTITIONS


class Script:
    """Makes up requests; mostly right, and often nearly right."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._producers: dict[int, Producer] = {one: Producer() for one in PRODUCERS}
        self._coordinator_epoch = 0

    def steps(self) -> Iterator[tuple[str, Step]]:
        kinds = (self._produce, self._produce, self._end, self._commit_offset)
        for _ in range(STEPS):
            yield self._random.choice(kinds)()

    def _epoch(self, producer_id: int) -> int:
        return max(0, self._producers[producer_id].epoch + self._random.choice((0, 0, 0, 0, -1, 1)))

    def _notice(self, producer_id: int, epoch: int) -> None:
        if epoch > self._producers[producer_id].epoch:
            self._producers[producer_id] = Producer(epoch)

    def _produce(self) -> tuple[str, Step]:
        random = self._random
        producer_id = random.choice(PRODUCERS)
        partition = random.randrange(PARTITIONS)
        known = self._producers[producer_id]
        epoch = self._epoch(producer_id)
        sequence = known.sequences[partition] if epoch == known.epoch else 0
        sequence = max(0, sequence + random.choice((0, 0, 0, 0, 0, 0, -1, 1)))
        sequences = list(known.sequences) if epoch == known.epoch else [0] * PARTITIONS
        sequences[partition] = sequence + 1
        self._producers[producer_id] = Producer(max(epoch, known.epoch), tuple(sequences))
        options = BatchOptions(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=random.random() < 0.9,
        )
        records = bytes(build_batch([RecordData(b"value", None, 5)], options))
        name = None if random.random() < 0.02 else "mine"
        data = ProduceRequest.PartitionProduceData(partition, records)
        topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
        request = ProduceRequest(name, random.choice((-1, 1)), 5000, [topic])
        version = random.randrange(3, 12)

        def step(client: RawClient) -> Answer:
            (answered,) = client.ask(request, ProduceResponse, version).responses
            (one,) = answered.partition_responses
            return one.error_code, one.base_offset, one.error_message

        return f"produce {producer_id} {epoch} {sequence} {partition} v{version}", step

    def _end(self) -> tuple[str, Step]:
        random = self._random
        if random.random() < 0.1:
            self._coordinator_epoch += 1
        producer_id, version = random.choice(PRODUCERS), random.choice((1, 2))
        transaction_version = random.choice((0, 1, 2, 2)) if version > 1 else 0
        epoch = self._epoch(producer_id)
        if transaction_version > 1 and random.random() < 0.7:
            epoch += 1
        self._notice(producer_id, epoch)
        places = [(TOPIC, 0), (TOPIC, 1), (OFFSETS, 0), (TOPIC, 9), ("unknown", 0), (OFFSETS, 3)]
        weights = (4, 4, 4, 1, 1, 1)
        topics = [
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name, [index])
            for name, index in set(random.choices(places, weights, k=3))
        ]
        coordinator_epoch = max(0, self._coordinator_epoch - (random.random() < 0.1))
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id, epoch, random.random() < 0.5, topics, coordinator_epoch
        )
        marker.transaction_version = transaction_version
        request = WriteTxnMarkersRequest(markers=[marker])

        def step(client: RawClient) -> Answer:
            return sorted(
                (one.producer_id, topic.name, result.partition_index, result.error_code)
                for one in client.ask(request, WriteTxnMarkersResponse, version).markers
                for topic in one.topics
                for result in topic.partitions
            )

        return f"end {producer_id} {epoch} TV{transaction_version} {topics}", step

    def _commit_offset(self) -> tuple[str, Step]:
        random = self._random
        producer_id, version = random.choice(PRODUCERS), random.randrange(5)
        epoch = self._epoch(producer_id)
        self._notice(producer_id, epoch)
        metadata = random.choice(("", "", "", "some", None, "x" * 5000))
        topics = [
            TxnOffsetCommitRequestTopic(
                random.choice((TOPIC, TOPIC, TOPIC, "unknown")),
                partitions=[
                    TxnOffsetCommitRequestPartition(index, random.randrange(100), -1, metadata)
                ],
            )
            for index in random.sample((0, 1, 9), k=random.choice((1, 1, 2)))
        ]
        group = random.choice((GROUP, GROUP, GROUP, GROUP, ""))
        request = TxnOffsetCommitRequest("mine", group, producer_id, epoch, topics=topics)
        if version > 2 and random.random() < 0.1:
            request.generation_id_or_member_epoch, request.member_id = 1, "nobody"

        def step(client: RawClient) -> Answer:
            return sorted(
                (topic.name, one.partition_index, one.error_code)
                for topic in client.ask(request, TxnOffsetCommitResponse, version).topics
                for one in topic.partitions
            )

        return f"commit {producer_id} {epoch} {group} v{version} {topics}", step


def fetched(client: RawClient, partition: int) -> Answer:
    """Return offsets, aborted transactions and the batches that a reader of committed ones gets."""
    wish = FetchRequest.FetchPartition(partition, fetch_offset=0, partition_max_bytes=1 << 24)
    topics = [FetchRequest.FetchTopic(TOPIC, partitions=[wish])]
    request = FetchRequest(max_bytes=1 << 24, isolation_level=1, topics=topics)
    (topic,) = client.ask(request, FetchResponse, 12).responses
    (one,) = topic.partitions
    batches = [
        (
            *(batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence),
            *(batch.is_transactional, batch.is_control),
            # A marker's timestamp is the broker's.
            [(record.key, record.value) for record in batch.records()],
        )
        for batch in read_batches(one.records or b"", is_cut_allowed=True)
    ]
    aborted = [(each.producer_id, each.first_offset) for each in one.aborted_transactions or []]
    return one.error_code, one.high_watermark, one.last_stable_offset, aborted, batches


def offsets(client: RawClient, *, is_stable: bool) -> Answer:
    wish = OffsetFetchRequestTopics(TOPIC, partition_indexes=[0, 1])
    groups = [OffsetFetchRequestGroup(GROUP, topics=[wish])]
    request = OffsetFetchRequest(groups=groups, require_stable=is_stable)
    (group,) = client.ask(request, OffsetFetchResponse, 8).groups
    return group.error_code, [
        (one.partition_index, one.committed_offset, one.metadata, one.error_code)
        for topic in group.topics
        for one in topic.partitions
    ]


def looks(client: RawClient) -> Answer:
    """Return all that can be seen of the transactions."""
    partitions = [fetched(client, index) for index in range(PARTITIONS)]
    return partitions, [offsets(client, is_stable=is_stable) for is_stable in (False, True)]


def prepare(node: Node) -> None:
    """Make the topics, and wait until groups are coordinated."""
    transactions = TopicWish("__transaction_state", 1, configs={"cleanup.policy": "compact"})
    make_topics(node.address, transactions, TopicWish(TOPIC, partitions=PARTITIONS))
    with RawClient(node.address) as client:

        def is_coordinated() -> bool:
            client.ask(FindCoordinatorRequest(key=GROUP), FindCoordinatorResponse, 3)
            places = [(index, -1, "", ErrorCode.NONE) for index in (0, 1)]
            return bool(offsets(client, is_stable=False) == (ErrorCode.NONE, places))

        node.process.wait_until(is_coordinated, "the group has a coordinator")
        node.process.wait_until(
            lambda: all(fetched(client, one) == (0, 0, 0, [], []) for one in range(PARTITIONS)),
            "the partitions are led",
        )


@pytest.mark.slow
def test_the_same_requests_have_the_same_answers(both_nodes: BothNodes) -> None:
    with both_nodes(SETTINGS) as (theirs, ours):
        for node in (theirs, ours):
            prepare(node)
        with RawClient(theirs.address) as judge, RawClient(ours.address) as client:
            codes: Counter[tuple[str, int]] = Counter()
            for number, (text, step) in enumerate(Script(Random(SEED)).steps()):
                expected = step(judge)
                assert step(client) == expected, f"step {number} of seed {SEED}: {text}"
                codes.update((text.split(maxsplit=1)[0], code) for code in _codes(expected))
                if number % 20 == 0:
                    assert looks(client) == looks(judge), f"after step {number}: {text}"
            assert looks(client) == looks(judge)
        assert codes.keys() >= SEEN, f"not seen: {SEEN - codes.keys()}"


def _codes(answer: Answer) -> list[int]:
    """Return the codes in an answer: the first item of Produce's, the last of each result."""
    results = cast("list[tuple[Any, ...]]", answer)
    return [one[-1] for one in results] if type(answer) is list else [answer[0]]

"""Random requests to a transaction coordinator: mostly right, and often nearly right.

A step names producers by what the broker has answered before, so that brokers that give out other
ids can be compared.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kvorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.records import BatchOptions, RecordData, build_batch

TOPIC: Final = "data"
PARTITIONS: Final = 2
GROUP: Final = "group"
IDS: Final[tuple[str, ...]] = ("first", "second", "third")
UNKNOWN: Final[str] = "unknown"
STATES: Final = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit")
STATES_AND_OTHERS: Final[tuple[str, ...]] = (
    *STATES,
    "CompleteAbort",
    "Dead",
    "ongoing",
    "nonsense",
)
PATTERNS: Final = ("", "f.*", "first|third", "[a-z]+", "(", "(?=f)", ".{5}")
Answer: TypeAlias = Any


class Producer(NamedTuple):
    """A producer's id and epoch."""

    producer_id: int = -1
    epoch: int = -1


@dataclass
class Side:
    """One of the two brokers, and the producers that it has given to each transactional id."""

    client: RawClient
    producers: dict[str, list[Producer]] = field(default_factory=dict[str, list[Producer]])
    numbers: dict[int, int] = field(default_factory=lambda: {-1: -1})
    """The ids of producers by the order in which this broker has named them."""

    def ask(self, request: Message, kind: type[Any], version: int) -> Any:
        return self.client.ask(request, kind, version)

    def number(self, producer_id: int) -> int:
        return self.numbers.setdefault(producer_id, len(self.numbers))

    def note(self, transactional_id: str, producer: Producer) -> None:
        if producer.producer_id != -1:
            self.producers.setdefault(transactional_id, []).append(producer)

    def producer(self, which: "Choice") -> Producer:
        """Return the producer that a step means; one of its own before any was named."""
        known = self.producers.get(which.transactional_id, [])
        if len(known) < which.back:
            return Producer(max(0, which.other_id), max(0, which.epoch_step))
        producer_id, epoch = known[-which.back]
        return Producer(
            producer_id + which.other_id, min(32_767, max(-1, epoch + which.epoch_step))
        )

    def settle(self) -> None:
        """Wait until no transaction is between its outcome and its end."""
        request = DescribeTransactionsRequest(transactional_ids=[*IDS, UNKNOWN])

        def is_settled() -> bool:
            answered = self.ask(request, DescribeTransactionsResponse, 0)
            return not any(
                one.transaction_state.startswith("Prepare") for one in answered.transaction_states
            )

        wait_for(is_settled, "every decided transaction has its end")


class Choice(NamedTuple):
    """A producer of a transactional id: the latest or one before it, or nearly one."""

    transactional_id: str
    back: int
    epoch_step: int
    other_id: int


Step: TypeAlias = Callable[[Side], Answer]


class Script:
    """Makes up the requests.

    Without flexible records no client may have transactions with an epoch each: a real coordinator
    then cannot write its record, and the transactional id is stuck.
    """

    def __init__(self, random: Random, *, has_flexible_records: bool) -> None:
        self._random = random
        self._has_flexible_records = has_flexible_records

    def steps(self, count: int) -> Iterator[tuple[str, Step]]:
        kinds = (
            *(self._init, self._add, self._add, self._add_as_broker, self._add_offsets),
            *(self._end, self._end, self._end, self._produce, self._produce),
            *(self._commit_offset, self._describe, self._list),
        )
        for _ in range(count):
            yield self._random.choice(kinds)()

    def _choice(self) -> Choice:
        random = self._random
        return Choice(
            random.choice((*IDS, *IDS, *IDS, *IDS, UNKNOWN, "")),
            random.choice((1, 1, 1, 1, 1, 1, 2, 3)),
            random.choice((0, 0, 0, 0, 0, 0, 0, -1, 1)),
            random.choice((0,) * 15 + (100_000,)),
        )

    def _init(self) -> tuple[str, Step]:
        random, which = self._random, self._choice()
        version = random.randrange(6)
        is_named = version >= 3 and random.random() < 0.5
        is_half_named = version >= 3 and random.random() < 0.05
        timeout_ms = random.choice((60_000,) * 8 + (0, -1, 900_000, 900_001))

        def step(side: Side) -> Answer:
            named = side.producer(which) if is_named else Producer()
            request = InitProducerIdRequest(which.transactional_id, timeout_ms, *named)
            if is_half_named:
                request.producer_epoch = 0 if request.producer_epoch == -1 else -1
            answered = side.ask(request, InitProducerIdResponse, version)
            side.note(
                which.transactional_id, Producer(answered.producer_id, answered.producer_epoch)
            )
            number = side.number(answered.producer_id)
            return answered.error_code, number, answered.producer_epoch

        return f"init v{version} {which} named {is_named} {timeout_ms}", step

    def _places(self) -> list[tuple[str, list[int]]]:
        random = self._random
        topics = random.sample((TOPIC, TOPIC, TOPIC, TOPIC, "absent", "__consumer_offsets"), 1)
        partitions = [0, 1, 0, 1, 0, 1, 9]
        return [(topic, sorted(set(random.sample(partitions, 2)))) for topic in topics]

    def _add(self) -> tuple[str, Step]:
        which, places = self._choice(), self._places()
        version = self._random.randrange(4)

        def step(side: Side) -> Answer:
            topics = [
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name, partitions)
                for name, partitions in places
            ]
            producer = side.producer(which)
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=which.transactional_id,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=topics,
            )
            answered = side.ask(request, AddPartitionsToTxnResponse, version)
            return _results(answered.results_by_topic_v3_and_below)

        return f"add v{version} {which} {places}", step

    def _add_as_broker(self) -> tuple[str, Step]:
        random = self._random
        wanted = [
            (
                self._choice(),
                self._places(),
                random.random() < 0.5 or not self._has_flexible_records,
            )
            for _ in range(random.choice((1, 1, 2)))
        ]
        if len({which.transactional_id for which, _, _ in wanted}) < len(wanted):
            wanted = wanted[:1]
        version = random.choice((4, 5))

        def step(side: Side) -> Answer:
            transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = []
            for which, places, verifies in wanted:
                producer = side.producer(which)
                topics = [
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name, partitions)
                    for name, partitions in places
                ]
                transactions.append(
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                        which.transactional_id, *producer, verifies, topics
                    )
                )
            request = AddPartitionsToTxnRequest(transactions=transactions)
            answered = side.ask(request, AddPartitionsToTxnResponse, version)
            return answered.error_code, sorted(
                (one.transactional_id, _results(one.topic_results))
                for one in answered.results_by_transaction
            )

        return f"add as a broker v{version} {wanted}", step

    def _add_offsets(self) -> tuple[str, Step]:
        which, version = self._choice(), self._random.randrange(5)

        def step(side: Side) -> Answer:
            request = AddOffsetsToTxnRequest(which.transactional_id, *side.producer(which), GROUP)
            return side.ask(request, AddOffsetsToTxnResponse, version).error_code

        return f"add offsets v{version} {which}", step

    def _end(self) -> tuple[str, Step]:
        random, which = self._random, self._choice()
        version = random.choice((0, 1, 2, 3, 4, *[5 if self._has_flexible_records else 4] * 4))
        is_commit = random.random() < 0.5

        def step(side: Side) -> Answer:
            request = EndTxnRequest(which.transactional_id, *side.producer(which), is_commit)
            answered = side.ask(request, EndTxnResponse, version)
            producer = Producer(answered.producer_id, answered.producer_epoch)
            if version >= 5:
                side.note(which.transactional_id, producer)
            return answered.error_code, side.number(producer.producer_id), producer.epoch

        return f"end v{version} {which} commit {is_commit}", step

    def _produce(self) -> tuple[str, Step]:
        random, which = self._random, self._choice()
        version = random.choice((9, 11, *[12 if self._has_flexible_records else 11] * 3))
        partition = random.randrange(PARTITIONS)
        sequence = random.choice((0, 0, 0, 1, 5))

        def step(side: Side) -> Answer:
            producer = side.producer(which)
            options = BatchOptions(
                producer_id=max(0, producer.producer_id),
                producer_epoch=max(0, producer.epoch),
                base_sequence=sequence,
                is_transactional=True,
            )
            records = bytes(build_batch([RecordData(b"value", None, 5)], options))
            data = ProduceRequest.PartitionProduceData(partition, records)
            topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
            request = ProduceRequest(which.transactional_id, -1, 5000, [topic])
            (answered,) = side.ask(request, ProduceResponse, version).responses
            (one,) = answered.partition_responses
            return one.error_code, one.base_offset

        return f"produce v{version} {which} {partition} sequence {sequence}", step

    def _commit_offset(self) -> tuple[str, Step]:
        random, which = self._random, self._choice()
        version = random.choice((2, 4, *[5 if self._has_flexible_records else 4] * 2))
        offset = random.randrange(100)

        def step(side: Side) -> Answer:
            producer = side.producer(which)
            topics = [
                TxnOffsetCommitRequestTopic(
                    TOPIC, partitions=[TxnOffsetCommitRequestPartition(0, offset, -1, "")]
                )
            ]
            request = TxnOffsetCommitRequest(
                which.transactional_id,
                GROUP,
                max(0, producer.producer_id),
                max(0, producer.epoch),
                topics=topics,
            )
            (topic,) = side.ask(request, TxnOffsetCommitResponse, version).topics
            return topic.partitions[0].error_code

        return f"commit an offset v{version} {which}", step

    def _describe(self) -> tuple[str, Step]:
        ids: list[str] = self._random.sample((*IDS, UNKNOWN, ""), 2)

        def step(side: Side) -> Answer:
            request = DescribeTransactionsRequest(transactional_ids=ids)
            answered = side.ask(request, DescribeTransactionsResponse, 0)
            return [
                (
                    *(one.error_code, one.transactional_id, one.transaction_state),
                    *(one.transaction_timeout_ms, one.transaction_start_time_ms > 0),
                    *(side.number(one.producer_id), one.producer_epoch),
                    sorted((topic.topic, sorted(topic.partitions)) for topic in one.topics),
                )
                for one in answered.transaction_states
            ]

        return f"describe {ids}", step

    def _list(self) -> tuple[str, Step]:
        random, version = self._random, self._random.randrange(3)
        states: list[str] = random.choice(([], random.sample(STATES_AND_OTHERS, 2)))
        duration_ms = random.choice((-1, -1, 0, 3_600_000)) if version else -1
        pattern = random.choice((None, *PATTERNS)) if version > 1 else None
        which = random.choice((None, None, self._choice()))

        def step(side: Side) -> Answer:
            ids = [] if which is None else [side.producer(which).producer_id]
            request = ListTransactionsRequest(states, ids, duration_ms, pattern)
            answered = side.ask(request, ListTransactionsResponse, version)
            return (
                answered.error_code,
                sorted(answered.unknown_state_filters),
                sorted(
                    (one.transactional_id, side.number(one.producer_id), one.transaction_state)
                    for one in answered.transaction_states
                ),
            )

        return f"list v{version} {states} {duration_ms} {pattern} {which}", step


def _results(topics: Any) -> Answer:
    return sorted(
        (topic.name, one.partition_index, one.partition_error_code)
        for topic in topics
        for one in topic.results_by_partition
    )

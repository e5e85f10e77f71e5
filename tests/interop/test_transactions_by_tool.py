"""kafka-transactions prints and does of ours what it prints and does of a real broker.

A transaction hangs where a partition has its records, and no coordinator knows of it. Brokers that
do not ask the coordinator before they append let one begin.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import KafkaException, Producer
from tests.interop.clients.confluent import (
    end_transaction,
    make_topics,
    read_to_end,
    transactional_producer,
)
from tests.interop.coordinated_nodes import SETTINGS, batches
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import ToolRunner
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import (
    BatchOptions,
    RecordBatch,
    RecordData,
    build_batch,
    decode_control_record,
)

ADDED_BY_THE_CLIENT: Final = 11
"""The last version of Produce that adds no partition to a transaction."""
UNVERIFIED: Final = {**SETTINGS, "transaction.partition.verification.enable": "false"}
PLACE: Final = "--topic {topic} --partition 0"
LOOKS: Final = (
    "list",
    "describe --transactional-id looks",
    "describe --transactional-id nobody",
    "describe-producers {place}",
    "find-hanging --topic {topic}",
    "find-hanging --broker-id 9",
    "list --duration-filter 0",
    "list --transactional-id-pattern lo.*",
)
ABORT_BY_PRODUCER: Final = "abort {place} --producer-id {producer_id}"
ABORTS: Final = (
    "find-hanging --topic {topic}",
    "find-hanging {place} --max-transaction-timeout 1",
    "find-hanging --broker-id 1",
    "abort {place} --start-offset 1",
    "abort {place} --start-offset 0",
    "describe-producers {place}",
    "abort {place} --start-offset 0",
    "find-hanging --topic {topic}",
    f"{ABORT_BY_PRODUCER} --producer-epoch 2 --coordinator-epoch 0",
    f"{ABORT_BY_PRODUCER} --producer-epoch 3 --coordinator-epoch 5",
    "describe-producers {place}",
    f"{ABORT_BY_PRODUCER} --producer-epoch 3 --coordinator-epoch 4",
    f"{ABORT_BY_PRODUCER} --producer-epoch 3 --coordinator-epoch 5",
    f"{ABORT_BY_PRODUCER} --producer-epoch 4 --coordinator-epoch 6",
    "abort {place} --producer-id 900 --producer-epoch 0 --coordinator-epoch 0",
    "describe-producers {place}",
    "find-hanging --topic {topic}",
)
TIME: Final = re.compile(r"\b\d{2,}\b")
SHORT_DURATION: Final = re.compile(r"(?<=<time> <time> )\d\b")
"""The duration of a transaction of less than 10 ms, after its time-out and its start."""


class Shown(NamedTuple):
    """A step, what the tool printed of it, and what the partition has after it."""

    step: str
    exit_code: int
    stdout: list[str]
    stderr: list[str]
    log: list[Any]


class Side:
    """One of the two brokers, and a topic on it."""

    def __init__(self, node: Node, tools: ToolRunner) -> None:
        self.address = node.address
        self._tools = tools
        self.topic = ""

    def begin(self, topic: str) -> None:
        """Make the topic of a test, and wait until it can be read."""
        make_topics(self.address, TopicWish(topic))
        self.topic = topic
        wait_for(lambda: self._batches() == [], "the partition is led", otherwise=self._batches)

    def run(self, step: str, producer_id: int = -1) -> Shown:
        """Run the tool; return what it showed."""
        words = step.replace("{place}", PLACE).format(topic=self.topic, producer_id=producer_id)
        servers = ("--bootstrap-server", self.address)
        done = self._tools.run("kafka-transactions", *servers, *words.split())
        texts = neutral(done.stdout), neutral(done.stderr)
        return Shown(words, done.exit_code, *texts, self.log())

    def described(self, name: str) -> Shown:
        """Run the tool until a transaction that was ended has its end."""

        def look() -> Shown | None:
            shown = self.run(f"describe --transactional-id {name}")
            return None if any("Prepare" in line for line in shown.stdout) else shown

        return wait_for(look, "the transaction has its end")

    def log(self) -> list[Any]:
        """Return producer, epoch and values of each batch, or the marker that it is."""
        found = self._batches()
        assert not isinstance(found, int)
        return [
            (
                *(one.base_offset, one.producer_id, one.producer_epoch),
                [decode_control_record(record) for record in one.records()]
                if one.is_control
                else [record.value for record in one.records()],
            )
            for one in found
        ]

    def _batches(self) -> list[RecordBatch] | int:
        with RawClient(self.address) as client:
            return batches(client, self.topic, 0)

    def committed(self) -> list[str]:
        """Return the values that a reader of committed records gets."""
        messages = read_to_end(self.address, [(self.topic, 0)], isolation="read_committed")
        return [(message.value() or b"").decode() for message in messages]

    def leave_open(self, producer_id: int, epoch: int, value: str) -> None:
        """Append the first record of a transaction that no coordinator knows of."""
        options = BatchOptions(
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
        )
        records = bytes(build_batch([RecordData(value.encode(), None, 5)], options))
        data = ProduceRequest.PartitionProduceData(0, records)
        topic = ProduceRequest.TopicProduceData(self.topic, partition_data=[data])
        request = ProduceRequest("nobody's", -1, 5000, [topic])
        with RawClient(self.address) as client:

            def appended() -> bool:
                answered = client.ask(request, ProduceResponse, ADDED_BY_THE_CLIENT)
                (one,) = answered.responses[0].partition_responses
                return one.error_code == ErrorCode.NONE

            wait_for(appended, "the record is appended")

    def new_producer_id(self) -> int:
        request = InitProducerIdRequest(None, 1000)
        with RawClient(self.address) as client:

            def given() -> int | None:
                answered = client.ask(request, InitProducerIdResponse, 4)
                return None if answered.error_code else answered.producer_id

            return wait_for(given, "the broker gives out ids of producers")

    def transacting(self, name: str) -> Producer:
        """Return a producer that has a transaction with one record open."""
        producer = transactional_producer(self.address, name)
        producer.begin_transaction()
        producer.produce(self.topic, "open", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        return producer


class Sides(NamedTuple):
    """A real node and one of ours."""

    real: Side
    ours: Side


@pytest.fixture(scope="module")
def sides(both_nodes: BothNodes, kafka_tools: ToolRunner) -> Iterator[Sides]:
    with both_nodes(UNVERIFIED) as (real, ours):
        yield Sides(Side(real, kafka_tools), Side(ours, kafka_tools))


def neutral(text: str) -> list[str]:
    """Return the lines without times and paddings, in order: that of the ids is a hash table's."""
    without_times = re.sub(r"[ \t]+", " ", TIME.sub("<time>", text))
    return sorted(SHORT_DURATION.sub("<time>", without_times).splitlines())


@pytest.mark.slow
def test_what_lists_and_describes_transactions_prints_what_it_prints_of_a_real_broker(
    sides: Sides,
) -> None:
    shown: list[list[Shown]] = []
    for side in sides:
        side.begin("looks")
        producer = side.transacting("looks")
        shown.append([side.run(step) for step in LOOKS])
        end_transaction(producer, is_committed=True)
    assert shown[0] == shown[1]


@pytest.mark.slow
def test_a_hanging_transaction_is_found_and_aborted_as_on_a_real_broker(sides: Sides) -> None:
    shown: list[list[Shown]] = []
    for side in sides:
        side.begin("hanging")
        first = side.new_producer_id()
        second = side.new_producer_id()
        side.leave_open(first, 0, "hangs")
        side.leave_open(second, 3, "hangs too")
        assert side.committed() == []
        shown.append([side.run(step, second) for step in ABORTS])
    real, ours = shown
    assert ours == real
    assert any("hanging" in line for line in real[0].stdout)


@pytest.mark.slow
def test_a_transaction_that_its_coordinator_knows_is_aborted_beneath_it_as_on_a_real_broker(
    sides: Sides,
) -> None:
    shown: list[list[Any]] = []
    for side in sides:
        side.begin("known")
        producer = side.transacting("known")
        aborted = [
            side.run(step)
            for step in ("find-hanging --topic {topic}", "abort {place} --start-offset 0")
        ]
        end_transaction(producer, is_committed=True)
        described = side.described("known")
        producer.begin_transaction()
        producer.produce(side.topic, "next", partition=0)
        end_transaction(producer, is_committed=True)
        shown.append([*aborted, described, side.described("known"), side.log(), side.committed()])
    assert shown[0] == shown[1]
    assert shown[0][-1] == ["next"]


@pytest.mark.slow
def test_a_transaction_is_terminated_by_force_as_on_a_real_broker(sides: Sides) -> None:
    shown: list[list[Any]] = []
    for side in sides:
        side.begin("forced")
        producer = side.transacting("forced")
        terminated = side.run("forceTerminateTransaction --transactionalId forced")
        with pytest.raises(KafkaException) as refused:
            producer.commit_transaction(PATIENCE_S)
        more = [
            side.run(f"{verb} {name}")
            for verb in (
                "forceTerminateTransaction --transactionalId",
                "describe --transactional-id",
            )
            for name in ("forced", "never-begun")
        ]
        shown.append([terminated, refused.value.args[0].name(), *more, side.log()])
    assert shown[0] == shown[1]

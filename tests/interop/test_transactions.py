"""Transactions of applications: their clients see on ours what they see on a real broker."""

import asyncio
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import KafkaException
from tests.interop.clients.confluent import (
    end_transaction,
    make_topics,
    read_to_end,
    send,
    transactional_producer,
)
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import BothNodes, Node
from tests.support.waiting import PATIENCE_S

COUNT: Final = 40
SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Sides(NamedTuple):
    """A real node and one of ours."""

    real: Node
    ours: Node


@pytest.fixture(scope="module")
def sides(both_nodes: BothNodes) -> Iterator[Sides]:
    with both_nodes(SETTINGS) as (real, ours):
        yield Sides(real, ours)


def committed(servers: str, topic: str) -> list[str]:
    """Return the values that a reader of committed records gets from partition 0."""
    messages = read_to_end(servers, [(topic, 0)], isolation="read_committed")
    return [(message.value() or b"").decode() for message in messages]


def librdkafka(servers: str, topic: str) -> list[Any]:
    """Commit, abort, and be replaced; return what was seen of it."""
    make_topics(servers, TopicWish(topic))
    old = transactional_producer(servers, topic)
    for number in range(6):
        old.begin_transaction()
        old.produce(topic, f"value {number}", partition=0)
        end_transaction(old, is_committed=number % 2 == 0)
    old.begin_transaction()
    old.produce(topic, "left open", partition=0)
    old.flush(PATIENCE_S)
    new = transactional_producer(servers, topic)
    new.begin_transaction()
    new.produce(topic, "new", partition=0)
    end_transaction(new, is_committed=True)
    try:
        old.commit_transaction(PATIENCE_S)
    except KafkaException as error:
        fenced = error.args[0].name()
    else:
        fenced = "not fenced"
    return [committed(servers, topic), fenced]


def aiokafka(servers: str, topic: str) -> list[Any]:
    """Copy in transactions with offsets, aborting every other one; return what was seen of it."""
    library: Any = importlib.import_module("aiokafka")
    source = f"{topic}-source"
    make_topics(servers, TopicWish(topic), TopicWish(source))
    send(servers, source, [{"value": str(number), "partition": 0} for number in range(4)])

    async def copy() -> int | None:
        producer = library.AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        consumer = library.AIOKafkaConsumer(
            bootstrap_servers=servers, group_id=topic, enable_auto_commit=False
        )
        place = library.TopicPartition(source, 0)
        async with producer, consumer:
            consumer.assign([place])
            for number in range(4):
                await producer.begin_transaction()
                await producer.send_and_wait(topic, f"copy of {number}".encode(), partition=0)
                await producer.send_offsets_to_transaction({place: number + 1}, topic)
                if number % 2:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
            committed_offset: int | None = await consumer.committed(place)
        return committed_offset

    return [asyncio.run(copy()), committed(servers, topic)]


@pytest.mark.slow
@pytest.mark.parametrize("client", [librdkafka, aiokafka])
def test_a_client_sees_what_it_sees_on_a_real_broker(
    sides: Sides, client: Callable[[str, str], list[Any]]
) -> None:
    real, ours = (client(side.address, client.__name__) for side in sides)
    assert ours == real
    assert ours[0]


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 1, 0])
def test_kafkas_own_clients_copy_records_exactly_once(
    sides: Sides, java: Java, kafka_tools: ToolRunner, version: int
) -> None:
    """By the cluster's transaction.version the clients choose how to ask."""
    expected = [str(number) for number in range(COUNT)]
    for side in sides:
        servers = ("--bootstrap-server", side.address)
        feature = f"transaction.version={version}"
        verb = "upgrade" if version == 2 else "downgrade"
        kafka_tools.run("kafka-features", *servers, verb, "--feature", feature)
        source, target, group = (f"{name}-{version}" for name in ("source", "target", "copying"))
        make_topics(side.address, TopicWish(source), TopicWish(target))
        send(side.address, source, [{"value": str(one), "partition": 0} for one in range(COUNT)])
        arguments = (side.address, group, group, source, target, str(COUNT), "0")
        told = "\n".join(java.answers("ExactlyOnceCopy", *arguments))
        assert f"copied {COUNT} in " in told
        assert committed(side.address, target) == expected

"""Coordinators of transactions that move between a real broker and ours, with a transaction open.

A partition of ``__transaction_state`` is led by one and then by the other; and a data directory is
a real node's, then ours, then a real node's again.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults, kind_of_controllers
from tests.interop.clients.confluent import (
    end_transaction,
    make_topics,
    read_to_end,
    transactional_producer,
)
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node
from tests.support.waiting import PATIENCE_S, wait_for

REAL, OURS = 11, 12
STATE: Final = "__transaction_state"
LED_BY_REAL, LED_BY_OURS = "led-by-real", "led-by-ours"
TOPIC: Final = "carried"
PATIENT_MS: Final = 600_000
SETTINGS: Final = {
    "process.roles": "broker,controller",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    # Real brokers keep to the count that they have had at their start.
    one = {"transaction.state.log.num.partitions": "1"}
    with run_brokers(kind_of_controllers(), brokers=2, ours={OURS}, settings=one) as made:
        made.make_topic(STATE, f"{OURS}:{REAL}", "cleanup.policy=compact")
        made.make_topic(LED_BY_REAL, f"{REAL}:{OURS}")
        made.make_topic(LED_BY_OURS, f"{OURS}:{REAL}")
        yield made
        assert faults(made.brokers[OURS]) == []
        assert not re.search(r"IllegalState|Received fatal error", made.brokers[REAL].log_text)


def coordinate_at(cluster: BrokerCluster, leader: int) -> None:
    """Let one of the two brokers coordinate all transactions."""
    cluster.let_lead(STATE, leader, OURS if leader == REAL else REAL)


def transacting(servers: str, name: str) -> Producer:
    """Return a producer whose transactions last while brokers are moved and started."""
    return transactional_producer(servers, name, transaction_timeout_ms=PATIENT_MS)


def write(producer: Producer, topic: str, value: str) -> None:
    producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0


def read(servers: str, topic: str) -> list[str]:
    """Return the committed values of a topic up to its end."""
    found = read_to_end(servers, [(topic, 0)], isolation="read_committed")
    return [(message.value() or b"").decode() for message in found]


def reads(servers: str, expected: list[str]) -> bool:
    return read(servers, LED_BY_OURS) == expected


@pytest.mark.slow
@pytest.mark.parametrize("first", [OURS, REAL], ids=["from ours", "from a real one"])
def test_a_transaction_goes_on_under_another_coordinator(
    cluster: BrokerCluster, first: int
) -> None:
    then = REAL if first == OURS else OURS
    topics = (LED_BY_REAL, LED_BY_OURS)
    before = {topic: read(cluster.servers, topic) for topic in topics}
    for is_committed in (True, False):
        coordinate_at(cluster, first)
        producer = transacting(cluster.servers, f"from {first}")
        producer.begin_transaction()
        write(producer, LED_BY_REAL, f"{first} {is_committed}")
        coordinate_at(cluster, then)
        write(producer, LED_BY_OURS, f"{first} {is_committed}")
        end_transaction(producer, is_committed=is_committed)
    expected = {topic: [*before[topic], f"{first} True"] for topic in topics}

    def found() -> dict[str, list[str]]:
        return {topic: read(cluster.servers, topic) for topic in topics}

    wait_for(lambda: found() == expected, "the transactions are whole", otherwise=found)


@pytest.mark.slow
def test_a_transaction_of_each_coordinator_is_ended_by_the_one_after_it(
    cluster: BrokerCluster,
) -> None:
    """A producer that begins again has the transaction aborted that it has left open."""
    for first, then in ((OURS, REAL), (REAL, OURS)):
        coordinate_at(cluster, first)
        before = read(cluster.servers, LED_BY_OURS)
        old = transacting(cluster.servers, f"left at {first}")
        old.begin_transaction()
        write(old, LED_BY_OURS, "left open")
        coordinate_at(cluster, then)
        new = transacting(cluster.servers, f"left at {first}")
        new.begin_transaction()
        write(new, LED_BY_OURS, f"after {first}")
        end_transaction(new, is_committed=True)
        expected = [*before, f"after {first}"]
        wait_for(
            partial(reads, cluster.servers, expected),
            "the transaction that was left open is aborted",
        )


@pytest.mark.slow
def test_a_data_directory_changes_hands_with_a_transaction_open(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    with Node(tmp_path, SETTINGS, java=java).format(tools=kafka_tools) as real:
        make_topics(real.address, TopicWish(TOPIC))
        producer = transacting(real.address, "carried")
        producer.begin_transaction()
        write(producer, TOPIC, "begun at a real node")
        ports = real.broker_port, real.controller_port
    with Node(tmp_path, SETTINGS, ports=ports) as ours:
        write(producer, TOPIC, "and ended at ours")
        end_transaction(producer, is_committed=True)
        assert len(read(ours.address, TOPIC)) == 2
        producer.begin_transaction()
        write(producer, TOPIC, "begun at ours")
    with Node(tmp_path, SETTINGS, ports=ports, java=java) as again:
        write(producer, TOPIC, "and aborted at a real node")
        end_transaction(producer, is_committed=False)
        assert len(read(again.address, TOPIC)) == 2
        producer.begin_transaction()
        write(producer, TOPIC, "the next")
        end_transaction(producer, is_committed=True)
        assert read(again.address, TOPIC)[-1] == "the next"

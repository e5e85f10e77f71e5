"""Spark's Kafka source and sink where records are in transactions, and brokers are killed."""

import json
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.interop.broker_cluster import THREE_REPLICAS, BrokerCluster, RunBrokers, faults
from tests.interop.clients.confluent import (
    end_transaction,
    make_topics,
    read_to_end,
    transactional_producer,
)
from tests.interop.clients.spark_programs import (
    STREAMS,
    copy_committed,
    read_isolated,
    run_spark_program,
    spark_program,
)
from tests.interop.coordinated_nodes import SETTINGS
from tests.support.clients.driver import TopicWish
from tests.support.fixtures import JarsOf
from tests.support.kafka.fetch_jars import SPARK_CONNECTOR
from tests.support.node import BothNodes
from tests.support.node_process import NodeProcess
from tests.support.waiting import PATIENCE_S, wait_for

ORDERS: Final = "orders"
COPIES: Final = "copies"
PARTITIONS: Final = 3
TRANSACTIONS_AT_ONCE: Final = 10
PATIENT_MS: Final = 600_000
"""The time-out of transactions, in which Spark starts and reads."""
RECORDS: Final = 4
"""The records of a transaction."""
BROKERS: Final = frozenset({11, 12, 13})


class Orders:
    """Transactions with orders, every other one of which is aborted."""

    def __init__(self, servers: str) -> None:
        self.committed: set[str] = set()
        self.aborted: set[str] = set()
        self._producer = transactional_producer(
            servers, "ordering", linger_ms=0, transaction_timeout_ms=PATIENT_MS
        )
        self._count = 0

    def write(self) -> None:
        for number in range(TRANSACTIONS_AT_ONCE):
            is_committed = number % 2 == 0
            orders = self._begin()
            end_transaction(self._producer, is_committed=is_committed)
            (self.committed if is_committed else self.aborted).update(orders)

    @contextmanager
    def one_left_open(self) -> Generator[None]:
        """Have a transaction with records open within the context."""
        self._begin()
        yield
        end_transaction(self._producer, is_committed=False)

    def _begin(self) -> list[str]:
        """Begin a transaction, and have the brokers write its records."""
        orders = [f"order {self._count + one}" for one in range(RECORDS)]
        self._count += RECORDS
        self._producer.begin_transaction()
        for number, order in enumerate(orders):
            self._producer.produce(ORDERS, order, partition=number % PARTITIONS)
        assert self._producer.flush(PATIENCE_S) == 0
        return orders


@pytest.fixture
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers("kvorum", brokers=3, ours=BROKERS, settings=THREE_REPLICAS) as cluster:
        replicas = ":".join(map(str, sorted(BROKERS)))
        for topic in (ORDERS, COPIES):
            cluster.make_topic(topic, ",".join([replicas] * PARTITIONS))
        yield cluster
        for broker in cluster.brokers.values():
            assert faults(broker) == []


@pytest.mark.slow
def test_a_batch_query_reads_at_each_isolation_level_what_it_reads_of_a_real_broker(
    both_nodes: BothNodes, kafka_jars: JarsOf
) -> None:
    with both_nodes(SETTINGS) as (real, ours):
        for node in (real, ours):
            make_topics(node.address, TopicWish(ORDERS, PARTITIONS))
        by_real = Orders(real.address)
        by_ours = Orders(ours.address)
        for orders in (by_real, by_ours):
            orders.write()
        places = (kafka_jars(SPARK_CONNECTOR), ORDERS, real.address, ours.address)
        with by_real.one_left_open(), by_ours.one_left_open():
            of_real, of_ours = json.loads(run_spark_program(read_isolated, *places))
    assert of_ours == of_real
    assert {value for _, _, value in of_ours["read_committed"]} == by_ours.committed
    assert {value for _, _, value in of_ours["read_uncommitted"]} > by_ours.aborted


@pytest.mark.slow
def test_a_stream_copies_all_that_is_committed_and_nothing_else_whatever_is_killed(
    cluster: BrokerCluster, kafka_jars: JarsOf, tmp_path: Path
) -> None:
    places = (cluster.servers, kafka_jars(SPARK_CONNECTOR), tmp_path / "checkpoints")
    command = spark_program(copy_committed, *places, ORDERS, COPIES)
    orders = Orders(cluster.servers)
    partitions = [(COPIES, partition) for partition in range(PARTITIONS)]

    def copied() -> set[str]:
        messages = read_to_end(cluster.servers, partitions)
        return {(message.value() or b"").decode() for message in messages}

    def wait_until_copied() -> None:
        wait_for(lambda: copied() >= orders.committed, "every order is copied", otherwise=copied)

    with NodeProcess(command, tmp_path / "spark.log", ready=STREAMS) as stream:
        orders.write()
        wait_until_copied()
        for broker in cluster.brokers.values():
            broker.kill()
            orders.write()
            broker.start()
            wait_until_copied()
        orders.write()
        # Its Java process is of its group.
        os.killpg(stream.pid, signal.SIGKILL)
        stream.wait()
        orders.write()
        stream.start()
        wait_until_copied()
        os.killpg(stream.pid, signal.SIGKILL)
        stream.wait()
    assert copied() == orders.committed

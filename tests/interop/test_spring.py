"""Spring's listeners, in transactions and in a share group, with an application that is killed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults
from tests.interop.clients.confluent import read_to_end, send
from tests.support.fixtures import JarsOf
from tests.support.group_configs import configure_group
from tests.support.kafka.fetch_jars import SPRING
from tests.support.kafka.java import Java
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

ORDERS: Final = "orders"
DEAD_LETTERS: Final = "orders-dlt"
INVOICES: Final = "invoices"
PAYMENTS: Final = "payments"
PAYING_GROUP: Final = "paying"
PAYING: Final = {
    "share.auto.offset.reset": "earliest",
    "share.isolation.level": "read_committed",
}
"""The configuration of the share group."""
PARTITIONS: Final = 3
BROKERS: Final = frozenset({11, 12, 13})
KINDS: Final = ("good", "bad", "late", "good", "refused")
"""The fates of orders in an application, by their number."""
ORDERS_AT_ONCE: Final = 60
HEAP_MB: Final = 300
RUNS: Final = "The listeners have started"
"""The line of an application whose listeners may get records."""
SETTINGS: Final = {
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.share.record.lock.duration.ms": "6000",
    "group.share.min.record.lock.duration.ms": "6000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "min.insync.replicas": "2",
}


@pytest.fixture
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers("kvorum", brokers=3, ours=BROKERS, settings=SETTINGS) as cluster:
        with RawClient(cluster.servers.split(",")[0]) as client:
            configure_group(client, PAYING_GROUP, PAYING)
        yield cluster
        for broker in cluster.brokers.values():
            assert faults(broker) == []


class Orders:
    """The orders that are sent, and the records that an application made of them."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self.sent: list[str] = []

    def send_more(self) -> None:
        first = len(self.sent)
        numbers = range(first, first + ORDERS_AT_ONCE)
        more = [f"{KINDS[number % len(KINDS)]} order {number}" for number in numbers]
        self.sent += more
        records = [
            {"key": str(number), "value": value, "partition": number % PARTITIONS}
            for number, value in enumerate(more)
        ]
        send(self._servers, ORDERS, records)

    @property
    def bad(self) -> list[str]:
        """The orders that cannot be invoiced, sorted."""
        return sorted(order for order in self.sent if order.startswith("bad"))

    @property
    def invoiced(self) -> list[str]:
        """The orders that become invoices, sorted."""
        return sorted(order for order in self.sent if not order.startswith("bad"))

    @property
    def paid(self) -> set[str]:
        """The orders whose invoices are paid."""
        return {order for order in self.invoiced if not order.startswith("refused")}

    def committed(self, topic: str) -> list[str]:
        """Return the committed values of a topic, sorted."""
        places = [(topic, partition) for partition in range(PARTITIONS)]
        messages = read_to_end(self._servers, places, isolation="read_committed")
        return sorted((message.value() or b"").decode() for message in messages)

    def are_done(self) -> bool:
        processed = self.committed(INVOICES) + self.committed(DEAD_LETTERS)
        return set(processed) == set(self.sent) and set(self.committed(PAYMENTS)) >= self.paid


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_order_is_invoiced_once_and_paid_whatever_is_killed(
    cluster: BrokerCluster, java: Java, kafka_jars: JarsOf, tmp_path: Path, protocol: str
) -> None:
    spring = Java(java.executable, kafka_jars(SPRING))
    arguments = (cluster.servers, protocol, str(len(BROKERS)))
    command = spring.program("InvoicesBySpring", *arguments, heap_mb=HEAP_MB)
    orders = Orders(cluster.servers)

    def finish(what: str) -> None:
        wait_for(orders.are_done, what, otherwise=lambda: orders.committed(PAYMENTS))

    with NodeProcess(command, tmp_path / "spring.log", ready=RUNS) as application:
        orders.send_more()
        finish("the first orders are done")

        orders.send_more()
        application.kill()
        application.start()
        finish("the orders are done after the application was killed")

        for broker in cluster.brokers.values():
            broker.kill()
            orders.send_more()
            finish("the orders are done without a broker")
            broker.start()
    assert orders.committed(INVOICES) == orders.invoiced
    assert orders.committed(DEAD_LETTERS) == orders.bad
    assert set(orders.committed(PAYMENTS)) == orders.paid

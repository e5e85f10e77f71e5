"""Real nodes and ours in one cluster whose connections all are TLS, both sides with certificates.

The authorizer lets only the nodes' own user do what nodes do among themselves.
"""

import importlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind, Node
from tests.support.ports import free_ports
from tests.support.tls_nodes import NODE_SUBJECT, Keys
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow

VOTERS: Final[Mapping[int, Kind]] = {1: "kvorum", 2: "kafka", 3: "kvorum"}
BROKERS: Final[Mapping[int, Kind]] = {11: "kafka", 12: "kvorum"}
TOPIC: Final = "shared"
PARTITIONS: Final = 4
RECORDS: Final = 400


class TlsCluster:
    """Three controllers and two brokers, none of which has a listener in plain text."""

    def __init__(self, folder: Path, keys: Keys, java: Java, tools: ToolRunner) -> None:
        self._folder = folder
        self._keys = keys
        self._java = java
        self._tools = tools
        ports = dict(zip(VOTERS, free_ports(len(VOTERS)), strict=True))
        self._voters = ",".join(f"{node}@localhost:{port}" for node, port in ports.items())
        self.controllers = {
            node_id: self._node(node_id, kind, "controller", ports[node_id])
            for node_id, kind in VOTERS.items()
        }
        self.brokers = {
            node_id: self._node(node_id, kind, "broker", *free_ports(1))
            for node_id, kind in BROKERS.items()
        }

    @property
    def client(self) -> dict[str, Any]:
        """The settings of a client of librdkafka that the authorizer lets do everything."""
        own = str(self._keys.client("admin"))
        return {
            "bootstrap.servers": ",".join(
                f"localhost:{node.broker_port}" for node in self.brokers.values()
            ),
            "security.protocol": "SSL",
            "ssl.ca.location": str(self._keys.trusted),
            "ssl.certificate.location": own,
            "ssl.key.location": own,
        }

    def _node(self, node_id: int, kind: Kind, role: str, port: int) -> Node:
        name = "CONTROLLER" if role == "controller" else "SECRET"
        listener = f"{name}://localhost:{port}"
        settings = {
            **self._keys.settings(),
            "process.roles": role,
            "listeners": listener,
            "advertised.listeners": listener,
            "inter.broker.listener.name": "SECRET",
            "listener.security.protocol.map": "CONTROLLER:SSL,SECRET:SSL",
            "controller.quorum.voters": self._voters,
            "ssl.client.auth": "required",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"{NODE_SUBJECT};User:CN=admin,O=Acme,C=DE",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "2",
        }
        if role == "controller":
            # Kafka refuses the name of a listener that it does not have.
            del settings["inter.broker.listener.name"]
        java = self._java if kind == "kafka" else None
        node = Node(
            self._folder / str(node_id), settings, node_id=node_id, java=java, ports=(port, port)
        )
        return node.format((), tools=self._tools if kind == "kafka" else None)

    def admin(self) -> Any:
        """Return an admin client; most of its classes have no types."""
        return importlib.import_module("confluent_kafka.admin").AdminClient(self.client)

    def create(self, topic: str, partitions: int) -> Collection[Any]:
        """Create a topic on both brokers, and return its partitions once they are in sync."""
        new_topic = importlib.import_module("confluent_kafka.admin").NewTopic
        admin = self.admin()
        wish = new_topic(topic, partitions, len(BROKERS))
        admin.create_topics([wish])[topic].result(PATIENCE_S)

        def found() -> Collection[Any]:
            metadata = admin.list_topics(topic, timeout=PATIENCE_S)
            partitions: Collection[Any] = metadata.topics[topic].partitions.values()
            return partitions

        def all_in_sync() -> bool:
            in_sync = [set(partition.isrs) == set(BROKERS) for partition in found()]
            return bool(in_sync) and all(in_sync)

        wait_for(all_in_sync, f"the replicas of {topic} are in sync")
        return found()


@pytest.fixture(scope="module")
def cluster(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsCluster]:
    keys = Keys(tmp_path_factory.mktemp("keys"))
    made = TlsCluster(tmp_path_factory.mktemp("nodes"), keys, java, kafka_tools)
    with ExitStack() as running:
        nodes = [*made.controllers.values(), *made.brokers.values()]
        for node in nodes:
            running.callback(node.kill)
            node.launch()
        for node in nodes:
            node.process.come_up()
        yield made


def produced(cluster: TlsCluster) -> list[str]:
    """Write records to all partitions, and return their values once all replicas have them."""
    producer = Producer({**cluster.client, "acks": "all"})
    values = [str(number) for number in range(RECORDS)]
    for number, value in enumerate(values):
        producer.produce(TOPIC, value.encode(), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return values


def test_all_replicate_serve_and_coordinate_by_tls(cluster: TlsCluster) -> None:
    partitions = cluster.create(TOPIC, PARTITIONS)
    assert {partition.leader for partition in partitions} == set(BROKERS)
    expected = produced(cluster)
    consumer = Consumer({**cluster.client, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    read: list[str] = []

    def has_read_all() -> bool:
        messages = consumer.consume(RECORDS, 0.2)
        read.extend((message.value() or b"").decode() for message in messages)
        return len(read) >= RECORDS

    try:
        wait_for(has_read_all, "the group has read all records")
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    assert sorted(read, key=int) == expected


def test_another_voter_leads_once_the_leader_is_gone(cluster: TlsCluster) -> None:
    for node in cluster.controllers.values():
        node.kill()
        cluster.create(f"without-{node.node_id}", 1)
        node.start()

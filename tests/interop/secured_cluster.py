"""Real nodes and ours in one cluster without a listener in plain text, and its clients.

The authorizer lets only the nodes' own user do what nodes do among themselves.
"""

import importlib
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind, Node
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE_S, wait_for

BROKER_LISTENER: Final = "SECRET"
CONTROLLER_LISTENER: Final = "CONTROLLER"


@dataclass(frozen=True, kw_only=True)
class NodeSecurity:
    """The security of nodes' listeners and connections, and a client that may do all.

    `super_users` are the nodes and that client; `client` are its settings in librdkafka's words.
    """

    protocol: str
    settings: Mapping[str, str]
    super_users: str
    client: Mapping[str, str]
    format_options: Sequence[str] = ()


@dataclass
class SecuredCluster:
    """Controllers and brokers of either kind, each in a process, all at addresses of localhost."""

    folder: Path
    security: NodeSecurity
    java: Java
    tools: ToolRunner
    voters: Mapping[int, Kind]
    broker_kinds: Mapping[int, Kind]
    controllers: Mapping[int, Node] = field(init=False)
    brokers: dict[int, Node] = field(init=False)

    def __post_init__(self) -> None:
        ports = dict(zip(self.voters, free_ports(len(self.voters)), strict=True))
        self._voters_text = ",".join(f"{node}@localhost:{port}" for node, port in ports.items())
        self.controllers = {
            node_id: self.node(node_id, kind, "controller", ports[node_id])
            for node_id, kind in self.voters.items()
        }
        self.brokers = {
            node_id: self.node(node_id, kind, "broker", *free_ports(1))
            for node_id, kind in self.broker_kinds.items()
        }

    @contextmanager
    def running(self) -> Generator[None]:
        """Start all nodes, and end them at the end."""
        with ExitStack() as ending:
            nodes = [*self.controllers.values(), *self.brokers.values()]
            for node in nodes:
                ending.callback(node.kill)
                node.launch()
            for node in nodes:
                node.process.come_up()
            yield

    @property
    def client(self) -> dict[str, Any]:
        """The settings of a client of librdkafka that the authorizer lets do everything."""
        servers = ",".join(f"localhost:{node.broker_port}" for node in self.brokers.values())
        return {"bootstrap.servers": servers, **self.security.client}

    def node(
        self,
        node_id: int,
        kind: Kind,
        role: str,
        port: int,
        *,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> Node:
        """Return a formatted node of one role, with `more` settings."""
        name = CONTROLLER_LISTENER if role == "controller" else BROKER_LISTENER
        listener = f"{name}://localhost:{port}"
        protocol = self.security.protocol
        settings = {
            **self.security.settings,
            "process.roles": role,
            "listeners": listener,
            "advertised.listeners": listener,
            "inter.broker.listener.name": BROKER_LISTENER,
            "listener.security.protocol.map": (
                f"{CONTROLLER_LISTENER}:{protocol},{BROKER_LISTENER}:{protocol}"
            ),
            "controller.quorum.voters": self._voters_text,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": self.security.super_users,
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": str(len(self.broker_kinds)),
            **more,
        }
        if role == "controller":
            # Kafka refuses the name of a listener that it does not have.
            del settings["inter.broker.listener.name"]
        java = self.java if kind == "kafka" else None
        folder = self.folder / str(node_id)
        node = Node(folder, settings, node_id=node_id, java=java, ports=(port, port))
        tools = self.tools if kind == "kafka" else None
        return node.format(self.security.format_options, tools=tools)

    def admin(self) -> Any:
        """Return an admin client; most of its classes have no types."""
        return importlib.import_module("confluent_kafka.admin").AdminClient(self.client)

    def create(self, topic: str, partitions: int) -> Collection[Any]:
        """Create a topic on all brokers, and return its partitions once they are in sync."""
        new_topic = importlib.import_module("confluent_kafka.admin").NewTopic
        admin = self.admin()
        wish = new_topic(topic, partitions, len(self.brokers))
        admin.create_topics([wish])[topic].result(PATIENCE_S)

        def found() -> Collection[Any]:
            metadata = admin.list_topics(topic, timeout=PATIENCE_S)
            partitions: Collection[Any] = metadata.topics[topic].partitions.values()
            return partitions

        def all_in_sync() -> bool:
            in_sync = [set(partition.isrs) == set(self.brokers) for partition in found()]
            return bool(in_sync) and all(in_sync)

        wait_for(all_in_sync, f"the replicas of {topic} are in sync")
        return found()

    def produce(self, topic: str, records: int, partitions: int) -> list[str]:
        """Write records to all partitions; return their values once all replicas have them."""
        producer = Producer({**self.client, "acks": "all"})
        values = [str(number) for number in range(records)]
        for number, value in enumerate(values):
            producer.produce(topic, value.encode(), partition=number % partitions)
        assert producer.flush(PATIENCE_S) == 0
        return values

    def exchange_records(self, topic: str, *, partitions: int, records: int) -> None:
        """Have all brokers lead a new topic, and a group read what is written to it."""
        created = self.create(topic, partitions)
        assert {partition.leader for partition in created} == set(self.brokers)
        expected = self.produce(topic, records, partitions)
        assert sorted(self.read_by_group(topic, records), key=int) == expected

    def read_by_group(self, topic: str, records: int) -> list[str]:
        """Return the values of so many records, read and committed by a group."""
        settings = {**self.client, "group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.subscribe([topic])
        read: list[str] = []

        def has_read_all() -> bool:
            messages = consumer.consume(records, 0.2)
            read.extend((message.value() or b"").decode() for message in messages)
            return len(read) >= records

        try:
            wait_for(has_read_all, "the group has read all records")
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return read

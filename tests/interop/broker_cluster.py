"""Brokers, real ones or ours, in processes of their own, on controllers of either kind."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from confluent_kafka import KafkaException
from tests.interop.clients.confluent import ConfluentDriver
from tests.support import troubled_disks
from tests.support.clients.driver import ClusterView, PartitionView
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import NO_VOTERS, Kind, Node
from tests.support.ports import listens
from tests.support.quorum.quorum import quorum_of
from tests.support.waiting import wait_for

from kvorum.wire.records import RecordBatch, read_batches

SESSION_TIMEOUT_MS = 3000
THREE_REPLICAS: Final = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
}
"""The settings of three brokers by which each topic for groups and transactions outlives one."""
_FAULT = re.compile(r"^\[[^\]]*\] (?:FATAL|ERROR) .*", re.MULTILINE)

# Small brokers that notice soon who lags behind.
_BROKER_SETTINGS = {
    "process.roles": "broker",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "replica.fetch.wait.max.ms": "250",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": "2000000",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
_QUORUM_SETTINGS = {
    "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    # The tests decide which replica leads.
    "auto.leader.rebalance.enable": "false",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}


def faults(node: Node) -> list[str]:
    return _FAULT.findall(node.log_text)


@dataclass(frozen=True, slots=True)
class OlderBrokers:
    """Real brokers of an older release, and the metadata.version that they can follow."""

    java: Java
    release_version: str


def kind_of_controllers() -> Kind:
    """Return whose controllers are below brokers that have no say in it."""
    return "kafka" if os.environ.get("KVORUM_REAL_CONTROLLERS") else "kvorum"


class BrokerCluster:
    """Controllers and some brokers, of which those in `ours` are kvorum's.

    With `has_troubled_disks` the disks of those are slow, and can be made full.
    """

    def __init__(
        self,
        kind: Kind,
        folder: Path,
        *,
        brokers: int,
        java: Java,
        tools: ToolRunner,
        ours: Collection[int] = (),
        controllers: int = 1,
        settings: Mapping[str, str] = MappingProxyType({}),
        older: OlderBrokers | None = None,
        has_troubled_disks: bool = False,
    ) -> None:
        self.tools = tools
        self._folder = folder
        self._format_options = () if older is None else ("--release-version", older.release_version)
        self.quorum = quorum_of(
            kind, folder / "controllers", controllers, _QUORUM_SETTINGS, java=java, tools=tools
        )
        runtime = java if older is None else older.java
        self.brokers: dict[int, Node] = {}
        for node_id in range(11, 11 + brokers):
            place = folder / str(node_id)
            own = {
                **_BROKER_SETTINGS,
                "controller.quorum.bootstrap.servers": self.quorum.bootstrap_servers,
                "log.dirs": f"{place / 'one'},{place / 'two'}",
                **{key: value.format(node_id=node_id) for key, value in settings.items()},
            }
            runs_on = None if node_id in ours else runtime
            broker = Node(place, own, node_id=node_id, java=runs_on)
            if has_troubled_disks and runs_on is None:
                broker.process.command = troubled_disks.server_command(broker.properties)
            self.brokers[node_id] = broker

    @property
    def servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @contextmanager
    def running(self) -> Generator[BrokerCluster]:
        """Format and start all nodes, and wait until no broker is fenced; end all of them."""
        with self.quorum:
            try:
                self._start()
                self.wait_for_brokers(*self.brokers)
                yield self
            finally:
                for broker in self.brokers.values():
                    broker.kill()

    def _start(self) -> None:
        self.quorum.form(self.quorum.members, *self._format_options)
        self.quorum.start()
        for broker in self.brokers.values():
            broker.format((*NO_VOTERS, *self._format_options), tools=self.tools)
            broker.launch()
        for node in (*self.quorum.members.values(), *self.brokers.values()):
            node.process.come_up()

    def metadata_directories(self) -> dict[int, Path]:
        """Return where each node keeps the metadata log, by node id."""
        nodes = {**self.quorum.members, **self.brokers}
        return {node_id: node.metadata_log for node_id, node in nodes.items()}

    def metadata_batches(self) -> list[RecordBatch]:
        """Return the batches of records in the log of the controller that leads."""
        directory = self.metadata_directories()[self.leader_of_quorum()]
        data = b"".join(segment.read_bytes() for segment in sorted(directory.glob("*.log")))
        return [batch for batch in read_batches(data, is_cut_allowed=True) if not batch.is_control]

    def tool(self, name: str, *arguments: str) -> str:
        return self.tools.printed(name, "--bootstrap-server", self.servers, *arguments)

    def make_topic(self, topic: str, assignment: str, *configs: str) -> None:
        """Create a topic with these replicas, and wait until those of partition 0 are in sync."""
        options = [word for config in configs for word in ("--config", config)]
        place = ("--topic", topic, "--replica-assignment", assignment)
        self.tool("kafka-topics", "--create", *place, *options)
        replicas = [int(replica) for replica in assignment.partition(",")[0].split(":")]
        self.wait_for_partitions(topic, leaders={replicas[0]}, isr=set(replicas))

    def reassign(self, topic: str, *replicas: int) -> None:
        """Give the only partition other replicas, and wait until Kafka's tool finds it done."""
        file = self._folder / "reassignment.json"
        one = {"topic": topic, "partition": 0, "replicas": replicas}
        file.write_text(json.dumps({"version": 1, "partitions": [one]}))
        plan = ("--reassignment-json-file", str(file))
        self.wait_until_known(topic)
        self.tool("kafka-reassign-partitions", *plan, "--execute")
        wait_for(
            lambda: "is completed" in self.tool("kafka-reassign-partitions", *plan, "--verify"),
            f"{topic} has the replicas {replicas}",
            otherwise=lambda: self.partitions(topic),
        )

    def let_lead(self, topic: str, leader: int, follower: int) -> None:
        """Have a broker lead the only partition of a topic, and another one follow it."""
        if self.partitions(topic)[0].leader == leader:
            return
        self.reassign(topic, leader, follower)
        place = ("--bootstrap-server", self.servers, "--topic", topic, "--partition", "0")

        def look() -> bool:
            self.tools.run("kafka-leader-election", "--election-type", "preferred", *place)
            return self.partitions(topic)[0].leader == leader

        wait_for(look, f"{leader} leads {topic}", otherwise=lambda: self.partitions(topic))
        self.wait_for_partitions(topic, leaders={leader}, isr={leader, follower})

    def leader_of_quorum(self) -> int:
        return self.quorum.leader().node_id

    def wait_for_brokers(self, *node_ids: int) -> ClusterView:
        """Wait until exactly these brokers are unfenced, by what every one of them says."""
        expected = {node_id: self.brokers[node_id].address for node_id in node_ids}

        def look() -> ClusterView | None:
            views = [self._described(self.brokers[node_id].address) for node_id in node_ids]
            return views[0] if all(view and view.brokers == expected for view in views) else None

        return wait_for(look, f"just {node_ids} are unfenced", otherwise=self._logs)

    def wait_for_partitions(
        self, topic: str, *, leaders: set[int], isr: set[int] | None = None
    ) -> dict[int, PartitionView]:
        """Wait until every partition has one of these leaders, and this ISR if it is given."""

        def look() -> dict[int, PartitionView] | None:
            found = self.partitions(topic)
            for partition in found.values():
                if partition.leader not in leaders or isr not in (None, set(partition.isr)):
                    return None
            return found or None

        return wait_for(
            look,
            f"{topic} has leaders of {leaders} and the ISR {isr}",
            otherwise=lambda: f"{self.partitions(topic)}\n{self._logs()}",
        )

    def wait_until_known(self, topic: str) -> None:
        """Wait until every running broker shows a topic: a tool may ask any of them."""
        running = [one for one in self.brokers.values() if one.process.is_launched]
        wait_for(
            lambda: all(self.partitions_at(broker, topic) for broker in running),
            f"all brokers show {topic}",
            otherwise=self._logs,
        )

    def partitions(self, topic: str) -> dict[int, PartitionView]:
        """Return a topic's partitions as some running broker shows them; none while none can."""
        for broker in self.brokers.values():
            if not broker.process.is_launched:
                continue
            found = self.partitions_at(broker, topic)
            if found:
                return found
        return {}

    def partitions_at(self, broker: Node, topic: str) -> dict[int, PartitionView]:
        """Return a topic's partitions as one broker shows them; none while it cannot."""
        try:
            with ConfluentDriver(broker.address) as driver:
                return driver.describe_topic(topic)
        except (KafkaException, KeyError):
            return {}

    def _described(self, address: str) -> ClusterView | None:
        if not listens(address):
            return None
        try:
            with ConfluentDriver(address) as driver:
                return driver.describe_cluster()
        except (KafkaException, TimeoutError):
            return None

    def _logs(self) -> str:
        return "\n".join(broker.process.last_words() for broker in self.brokers.values())


RunBrokers = Callable[..., AbstractContextManager[BrokerCluster]]
"""Runs brokers; the fixture `run_brokers` is one."""

"""Broker and controller in processes of their own: ours with ours, and each with a real one."""

import contextlib
from collections.abc import Generator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.clients.driver import TopicWish
from tests.support.clients.kafka_python import KafkaPythonDriver
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import ORDERLY_END, Kind, process_of
from tests.support.node_process import run_kvorum, write_properties
from tests.support.ports import free_ports
from tests.support.waiting import PATIENCE_S, wait_for

CONTROLLER_ID = 3000


class Pair:
    """One controller and one broker, each real or ours."""

    def __init__(self, folder: Path) -> None:
        broker_port, controller_port = free_ports(2)
        self.broker = f"127.0.0.1:{broker_port}"
        self.controller = f"127.0.0.1:{controller_port}"
        self._folder = folder
        cluster_id = run_kvorum("storage", "random-uuid").strip()
        self._format("controller", CONTROLLER_ID, f"CONTROLLER://{self.controller}", cluster_id)
        self._format("broker", 1, f"PLAINTEXT://{self.broker}", cluster_id)

    def _format(self, role: str, node_id: int, listener: str, cluster_id: str) -> None:
        settings = {
            "process.roles": role,
            "node.id": str(node_id),
            "listeners": listener,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": self.controller,
            "log.dirs": str(self._folder / role),
            "offsets.topic.replication.factor": "1",
        }
        file = self.file(role)
        write_properties(file, settings)
        standalone = ["--standalone"] if role == "controller" else []
        run_kvorum("storage", "format", "-t", cluster_id, "-c", str(file), *standalone)

    def file(self, role: str) -> Path:
        """Return the properties file of a role."""
        return self._folder / f"{role}.properties"

    @contextlib.contextmanager
    def running(self, java: Java, controller: Kind, broker: Kind) -> Generator[str]:
        """Run both until the end of the block, when they must stop in order; yields a server."""
        with (
            process_of(controller, java, self.file("controller")) as below,
            process_of(broker, java, self.file("broker")) as above,
        ):
            yield self.broker
            assert above.terminate().exit_code == ORDERLY_END[broker]
            assert below.terminate().exit_code == ORDERLY_END[controller]


def administrate(servers: str) -> None:
    """Create a topic, see it, raise its partitions, delete it."""
    with KafkaPythonDriver(servers) as driver:
        assert driver.create_topics([TopicWish("made", 2)])["made"].code == 0
        wait_for(lambda: partitions_of(driver, "made") == 2, "there are two partitions")
        assert driver.create_partitions("made", 3).code == 0
        wait_for(lambda: partitions_of(driver, "made") == 3, "there are three partitions")
        assert driver.delete_topic("made").code == 0


def partitions_of(driver: KafkaPythonDriver, topic: str) -> int:
    return len(driver.describe_topic(topic)) if topic in driver.topics() else 0


def replication(tools: ToolRunner, servers: str) -> dict[str, str]:
    """Return the status of each replica of the metadata log, by node id."""
    done = tools.run(
        "kafka-metadata-quorum", "--bootstrap-server", servers, "describe", "--replication"
    )
    assert done.exit_code == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:] if line.strip()]
    return {row[0]: row[-1] for row in rows}


@pytest.mark.parametrize(
    ("controller", "broker"), [("kvorum", "kvorum"), ("kafka", "kvorum"), ("kvorum", "kafka")]
)
def test_a_broker_and_a_controller_work_together(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner, controller: Kind, broker: Kind
) -> None:
    with Pair(tmp_path).running(java, controller, broker) as servers:
        administrate(servers)
        assert replication(kafka_tools, servers) == {"3000": "Leader", "1": "Observer"}
        if broker == "kafka":
            produce_and_consume(servers)


def produce_and_consume(servers: str) -> None:
    """Send a record, idempotently, and read it: the broker does, on metadata that we keep."""
    with KafkaPythonDriver(servers) as driver:
        assert driver.create_topics([TopicWish("records")])["records"].code == 0
    outcomes: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    producer.produce("records", b"one", callback=lambda error, _: outcomes.append(error))
    producer.flush(PATIENCE_S)
    assert outcomes == [None]
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})
    try:
        consumer.assign([TopicPartition("records", 0, 0)])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.value() == b"one"
    finally:
        consumer.close()

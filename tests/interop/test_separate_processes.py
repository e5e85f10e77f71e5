"""Broker and controller in processes of their own: ours with ours, and each with a real one."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.interop.clients.driver import TopicWish
from tests.interop.clients.kafka_python import KafkaPythonDriver
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import free_ports
from tests.interop.kafka.tools import ToolRunner
from tests.interop.kvorum_node import listens, run_kvorum

pytestmark = pytest.mark.interop

CONTROLLER_ID = 3000
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 30
KILLED_BY_SIGTERM = 143
"""How Java ends after a controlled stop."""
ANSWER_SECONDS_MAX = 20


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
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        standalone = ["--standalone"] if role == "controller" else []
        run_kvorum("storage", "format", "-t", cluster_id, "-c", str(file), *standalone)

    def file(self, role: str) -> Path:
        """Return the properties file of a role."""
        return self._folder / f"{role}.properties"

    @contextlib.contextmanager
    def running(self, role: str, address: str, command: list[str], code: int) -> Generator[None]:
        """Run a process until the end of the block; it must then stop in good order."""
        with (self._folder / f"{role}.log").open("wb") as log:
            process = subprocess.Popen([*command, str(self.file(role))], stdout=log, stderr=log)
        try:
            wait_until(lambda: listens(address), START_SECONDS_MAX)
            yield
            process.terminate()
            assert process.wait(STOP_SECONDS_MAX) == code
        finally:
            process.kill()
            process.wait()


def wait_until(reached: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


OURS = ([sys.executable, "-m", "kvorum.cli", "server"], 0)


@pytest.fixture
def theirs(java: Java) -> tuple[list[str], int]:
    """The command that runs a real node, and how it ends."""
    return java.command("kafka.Kafka", heap_mb=256), KILLED_BY_SIGTERM


def administrate(servers: str) -> None:
    """Create a topic, see it, raise its partitions, delete it."""
    with KafkaPythonDriver(servers) as driver:
        assert driver.create_topics([TopicWish("made", 2)])["made"].code == 0
        wait_until(lambda: partitions_of(driver, "made") == 2, ANSWER_SECONDS_MAX)
        assert driver.create_partitions("made", 3).code == 0
        wait_until(lambda: partitions_of(driver, "made") == 3, ANSWER_SECONDS_MAX)
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


def test_our_broker_and_our_controller(tmp_path: Path, kafka_tools: ToolRunner) -> None:
    pair = Pair(tmp_path)
    with (
        pair.running("controller", pair.controller, *OURS),
        pair.running("broker", pair.broker, *OURS),
    ):
        administrate(pair.broker)
        assert replication(kafka_tools, pair.broker) == {"3000": "Leader", "1": "Observer"}


def test_our_broker_and_a_real_controller(
    tmp_path: Path, kafka_tools: ToolRunner, theirs: tuple[list[str], int]
) -> None:
    pair = Pair(tmp_path)
    with (
        pair.running("controller", pair.controller, *theirs),
        pair.running("broker", pair.broker, *OURS),
    ):
        administrate(pair.broker)
        assert replication(kafka_tools, pair.broker) == {"3000": "Leader", "1": "Observer"}


def test_a_real_broker_and_our_controller(
    tmp_path: Path, kafka_tools: ToolRunner, theirs: tuple[list[str], int]
) -> None:
    pair = Pair(tmp_path)
    with (
        pair.running("controller", pair.controller, *OURS),
        pair.running("broker", pair.broker, *theirs),
    ):
        administrate(pair.broker)
        assert replication(kafka_tools, pair.broker) == {"3000": "Leader", "1": "Observer"}
        produce_and_consume(pair.broker)


def produce_and_consume(servers: str) -> None:
    """Send a record, idempotently, and read it: the broker does, on metadata that we keep."""
    with KafkaPythonDriver(servers) as driver:
        assert driver.create_topics([TopicWish("records")])["records"].code == 0
    outcomes: list[object] = []
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    producer.produce("records", b"one", callback=lambda error, _: outcomes.append(error))
    producer.flush(ANSWER_SECONDS_MAX)
    assert outcomes == [None]
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g"})
    try:
        consumer.assign([TopicPartition("records", 0, 0)])
        message = consumer.poll(ANSWER_SECONDS_MAX)
        assert message is not None
        assert message.value() == b"one"
    finally:
        consumer.close()

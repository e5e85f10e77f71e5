"""A controller and a broker in processes of their own, ours and real Kafka's in every mix."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.interop.clients.driver import PartitionView, TopicWish
from tests.interop.clients.kafka_python import KafkaPythonDriver
from tests.interop.kafka.java import Java
from tests.interop.node import ORDERLY_END, Kind, process_of
from tests.support.node_process import NodeProcess, run_kvorum, write_properties
from tests.support.ports import free_ports

pytestmark = pytest.mark.interop


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the two processes listen."""

    broker: str
    controller: str


def write_settings(folder: Path, addresses: Addresses) -> None:
    """Write controller.properties and broker.properties."""
    common = {
        "controller.quorum.bootstrap.servers": addresses.controller,
        "controller.listener.names": "CONTROLLER",
        "auto.create.topics.enable": "false",
    }
    own = {
        "controller": {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://{addresses.controller}",
            "advertised.listeners": f"CONTROLLER://{addresses.controller}",
        },
        "broker": {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"PLAINTEXT://{addresses.broker}",
            "advertised.listeners": f"PLAINTEXT://{addresses.broker}",
        },
    }
    for role, settings in own.items():
        lines = {**common, **settings, "log.dirs": str(folder / role)}
        write_properties(folder / f"{role}.properties", lines)


def format_nodes(folder: Path) -> None:
    """Format the data of both."""
    identity = ["--cluster-id", run_kvorum("storage", "random-uuid").strip()]
    for role, quorum in (("controller", "--standalone"), ("broker", "--no-initial-controllers")):
        properties = str(folder / f"{role}.properties")
        run_kvorum("storage", "format", *identity, "--config", properties, quorum)


@contextmanager
def running(java: Java, kind: Kind, properties: Path) -> Generator[NodeProcess]:
    """Run a node; it has to stop in order when it is asked to."""
    with process_of(kind, java, properties) as process:
        yield process
        ended = process.terminate()
        assert ended.exit_code == ORDERLY_END[kind], "\n".join(ended.lines)


@pytest.mark.parametrize(
    ("controller", "broker"), [("kvorum", "kvorum"), ("kvorum", "kafka"), ("kafka", "kvorum")]
)
def test_a_broker_serves_what_its_controller_decides(
    tmp_path: Path, java: Java, controller: Kind, broker: Kind
) -> None:
    broker_port, controller_port = free_ports(2)
    addresses = Addresses(f"127.0.0.1:{broker_port}", f"127.0.0.1:{controller_port}")
    write_settings(tmp_path, addresses)
    format_nodes(tmp_path)
    with (
        running(java, controller, tmp_path / "controller.properties"),
        running(java, broker, tmp_path / "broker.properties") as process,
        KafkaPythonDriver(addresses.broker) as driver,
    ):
        process.wait_until(
            lambda: driver.describe_cluster().brokers == {2: addresses.broker},
            "the broker is unfenced",
        )
        _live_through(driver, process)


def _live_through(driver: KafkaPythonDriver, broker: NodeProcess) -> None:
    made = driver.create_topics([TopicWish("mixed", 2), TopicWish("mixed-wide", 1, 2)])
    assert {name: outcome.code for name, outcome in made.items()} == {"mixed": 0, "mixed-wide": 38}
    only_replica = PartitionView(leader=2, replicas=(2,), isr=(2,))
    assert driver.create_partitions("mixed", 3).code == 0
    grown = dict.fromkeys(range(3), only_replica)
    broker.wait_until(
        lambda: driver.describe_topic("mixed") == grown, "the topic has three partitions"
    )
    assert driver.set_topic_config("mixed", {"retention.ms": "99000"}).code == 0
    broker.wait_until(
        lambda: driver.topic_config("mixed")["retention.ms"] == "99000", "the value is read"
    )
    assert driver.delete_topic("mixed").code == 0
    broker.wait_until(lambda: driver.topics() == set(), "the topic is gone")

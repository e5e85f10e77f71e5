"""A controller and a broker in processes of their own, ours and real Kafka's in every mix."""

from pathlib import Path

import pytest
from tests.interop.mixed_processes import Addresses, format_nodes, running, write_settings
from tests.support.clients.driver import PartitionView, TopicWish
from tests.support.clients.kafka_python import KafkaPythonDriver
from tests.support.kafka.java import Java
from tests.support.node import Kind
from tests.support.node_process import NodeProcess
from tests.support.ports import free_ports


@pytest.mark.slow
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

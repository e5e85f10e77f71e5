"""Broker and controller in processes of their own: ours with ours, and each with a real one."""

from pathlib import Path

import pytest
from tests.interop.clients.confluent import read_to_end, send
from tests.support.clients.driver import KafkaPythonDriver, PartitionView, TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind, Node, make_pair


def administrate(broker: Node) -> None:
    """See the broker, create a topic, raise its partitions, configure it, delete it."""
    wait_until = broker.process.wait_until
    with KafkaPythonDriver(broker.address) as driver:
        wait_until(
            lambda: driver.describe_cluster().brokers == {2: broker.address},
            "the broker is unfenced",
        )
        made = driver.create_topics([TopicWish("made", 2), TopicWish("bad name")])
        assert {name: outcome.code for name, outcome in made.items()} == {"made": 0, "bad name": 17}
        assert driver.create_partitions("made", 3).code == 0
        grown = dict.fromkeys(range(3), PartitionView(leader=2, replicas=(2,), isr=(2,)))
        wait_until(lambda: driver.describe_topic("made") == grown, "there are three partitions")
        assert driver.set_topic_config("made", {"retention.ms": "99000"}).code == 0
        wait_until(
            lambda: driver.topic_config("made")["retention.ms"] == "99000", "the value is read"
        )
        assert driver.delete_topic("made").code == 0
        wait_until(lambda: driver.topics() == set(), "the topic is gone")


def replication(tools: ToolRunner, servers: str) -> dict[str, str]:
    """Return the status of each replica of the metadata log, by node id."""
    told = tools.printed(
        "kafka-metadata-quorum", "--bootstrap-server", servers, "describe", "--replication"
    )
    rows = [line.split() for line in told.splitlines()[1:] if line.strip()]
    return {row[0]: row[-1] for row in rows}


@pytest.mark.parametrize(
    ("controller", "broker"), [("kvorum", "kvorum"), ("kafka", "kvorum"), ("kvorum", "kafka")]
)
def test_a_broker_and_a_controller_work_together(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner, controller: Kind, broker: Kind
) -> None:
    pair = make_pair(tmp_path, java=java, kinds=(controller, broker))
    with pair.controller, pair.broker:
        servers = pair.broker.address
        administrate(pair.broker)
        assert replication(kafka_tools, servers) == {"1": "Leader", "2": "Observer"}
        if broker == "kafka":
            produce_and_consume(servers)


def produce_and_consume(servers: str) -> None:
    """Send a record, idempotently, and read it: the broker does, on metadata that we keep."""
    with KafkaPythonDriver(servers) as driver:
        assert driver.create_topics([TopicWish("records")])["records"].code == 0
    send(servers, "records", [{"value": b"one"}], enable_idempotence=True)
    (message,) = read_to_end(servers, [("records", 0)])
    assert message.value() == b"one"

"""A cluster whose brokers go over from plain text to SASL_SSL, one by one, beneath its clients."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, kind_of_controllers
from tests.interop.traffic import Traffic
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Node
from tests.support.ports import free_ports
from tests.support.sasl_clients import PLAIN_MODULE
from tests.support.tls_nodes import Keys

pytestmark = pytest.mark.slow

OURS: Final = (11, 12)
BROKERS: Final = (*OURS, 13)
"""The last one is a real one."""
TOPIC: Final = "orders"
PARTITIONS: Final = 3
ASSIGNMENT: Final = "11:12:13,12:13:11,13:11:12"
RECORDS_BETWEEN: Final = 50
SECURED: Final = "REPL"
LOGIN: Final = f'{PLAIN_MODULE} required username="node" password="of-nodes" user_node="of-nodes";'


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture
def cluster(java: Java, kafka_tools: ToolRunner, tmp_path: Path) -> Iterator[BrokerCluster]:
    made = BrokerCluster(
        kind_of_controllers(),
        tmp_path / "nodes",
        brokers=len(BROKERS),
        java=java,
        tools=kafka_tools,
        ours=OURS,
        settings={"min.insync.replicas": "2"},
    )
    with made.running():
        yield made


def steps(node: Node, keys: Keys, port: int) -> Iterator[Mapping[str, str]]:
    """Yield the settings of a broker in each step of the change."""
    plain = f"PLAINTEXT://{node.broker}"
    both = f"{plain},{SECURED}://localhost:{port}"
    prefix = f"listener.name.{SECURED.lower()}"
    with_another_listener = {
        "listeners": both,
        "advertised.listeners": both,
        "listener.security.protocol.map": (
            f"PLAINTEXT:PLAINTEXT,{SECURED}:SASL_SSL,CONTROLLER:PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"{prefix}.sasl.enabled.mechanisms": "PLAIN",
        f"{prefix}.plain.sasl.jaas.config": LOGIN,
        **keys.settings(),
    }
    yield with_another_listener
    yield {**with_another_listener, "inter.broker.listener.name": SECURED}


def test_no_record_is_lost_or_refused_while_brokers_go_over_to_sasl_ssl(
    cluster: BrokerCluster, keys: Keys
) -> None:
    placed = ("--topic", TOPIC, "--replica-assignment", ASSIGNMENT)
    cluster.tool("kafka-topics", "--create", *placed)
    cluster.wait_for_partitions(TOPIC, leaders=set(BROKERS), isr=set(BROKERS))
    ports = free_ports(len(BROKERS))
    plans = {
        node_id: steps(cluster.brokers[node_id], keys, port)
        for node_id, port in zip(BROKERS, ports, strict=True)
    }
    with Traffic(cluster.servers, TOPIC, PARTITIONS) as traffic:
        for _ in range(2):
            for node_id in BROKERS:
                node = cluster.brokers[node_id]
                traffic.wait_for_acknowledged(RECORDS_BETWEEN)
                node.stop()
                node.configure(next(plans[node_id]))
                node.start()
                cluster.wait_for_partitions(TOPIC, leaders=set(BROKERS), isr=set(BROKERS))
        traffic.wait_for_acknowledged(RECORDS_BETWEEN)
    traffic.check()

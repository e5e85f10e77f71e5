"""Real nodes and ours in one cluster whose connections are TLS, with certificates on both sides."""

import importlib
import ssl
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from tests.interop.secured_cluster import NodeSecurity, SecuredCluster
from tests.interop.traffic import Traffic
from tests.support.certificates import NODE_NAME, Certified
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind, Node
from tests.support.tls_nodes import NODE_SUBJECT, Keys, served_serial
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow

VOTERS: Final[Mapping[int, Kind]] = {1: "kvorum", 2: "kafka", 3: "kvorum"}
BROKERS: Final[Mapping[int, Kind]] = {11: "kafka", 12: "kvorum"}
TOPIC: Final = "shared"
PARTITIONS: Final = 4
RECORDS: Final = 400
OURS: Final = 12
RENEWED_TOPIC: Final = "renewed"
RENEWALS: Final = 3
RECORDS_BETWEEN: Final = 50


def by_certificates(keys: Keys) -> NodeSecurity:
    own = str(keys.client("admin"))
    return NodeSecurity(
        protocol="SSL",
        settings={**keys.settings(), "ssl.client.auth": "required"},
        super_users=f"{NODE_SUBJECT};User:CN=admin,O=Acme,C=DE",
        client={
            "security.protocol": "SSL",
            "ssl.ca.location": str(keys.trusted),
            "ssl.certificate.location": own,
            "ssl.key.location": own,
        },
    )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def cluster(
    keys: Keys, java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    security = by_certificates(keys)
    folder = tmp_path_factory.mktemp("nodes")
    made = SecuredCluster(folder, security, java, kafka_tools, VOTERS, BROKERS)
    with made.running():
        yield made


def test_all_replicate_serve_and_coordinate_by_tls(cluster: SecuredCluster) -> None:
    cluster.exchange_records(TOPIC, partitions=PARTITIONS, records=RECORDS)


def test_another_voter_leads_once_the_leader_is_gone(cluster: SecuredCluster) -> None:
    for node in cluster.controllers.values():
        node.kill()
        cluster.create(f"without-{node.node_id}", 1)
        node.start()


def test_certificates_are_renewed_beneath_clients(cluster: SecuredCluster, keys: Keys) -> None:
    created = cluster.create(RENEWED_TOPIC, PARTITIONS)
    assert {partition.leader for partition in created} == set(cluster.brokers)
    servers = str(cluster.client["bootstrap.servers"])
    client = keys.context(keys.folder / "admin.pem")
    with Traffic(servers, RENEWED_TOPIC, PARTITIONS, security=cluster.security.client) as traffic:
        for renewal in range(RENEWALS):
            following = keys.authority.certify(NODE_NAME)
            keys.write(following, keys.node.stem)
            for node_id, broker in cluster.brokers.items():
                traffic.wait_for_acknowledged(RECORDS_BETWEEN)
                alter_own_value(cluster, node_id, str(renewal))
                wait_until_served(broker, following, client)
            # Nodes connect again, and each shows the other what it has read meanwhile.
            for node in (*cluster.controllers.values(), cluster.brokers[OURS]):
                node.stop()
                node.start()
        traffic.wait_for_acknowledged(RECORDS_BETWEEN)
    traffic.check()


def wait_until_served(broker: Node, certified: Certified, client: ssl.SSLContext) -> None:
    serial = certified.certificate.serial_number
    wait_for(
        lambda: served_serial(broker.broker_port, client) == serial,
        "new connections get the other certificate",
    )


def alter_own_value(cluster: SecuredCluster, node_id: int, value: str) -> None:
    """Alter a dynamic value of a broker alone, upon which it reads its stores again."""
    classes = importlib.import_module("confluent_kafka.admin")
    entry = classes.ConfigEntry(
        "foo.bar", value, incremental_operation=classes.AlterConfigOpType.SET
    )
    resource = classes.ConfigResource("broker", str(node_id), incremental_configs=[entry])
    admin = cluster.admin()
    altered = admin.incremental_alter_configs([resource])
    altered[resource].result(PATIENCE_S)

"""Real nodes and ours in one cluster whose connections are TLS, with certificates on both sides."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from tests.interop.secured_cluster import NodeSecurity, SecuredCluster
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind
from tests.support.tls_nodes import NODE_SUBJECT, Keys

pytestmark = pytest.mark.slow

VOTERS: Final[Mapping[int, Kind]] = {1: "kvorum", 2: "kafka", 3: "kvorum"}
BROKERS: Final[Mapping[int, Kind]] = {11: "kafka", 12: "kvorum"}
TOPIC: Final = "shared"
PARTITIONS: Final = 4
RECORDS: Final = 400


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
def cluster(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    security = by_certificates(Keys(tmp_path_factory.mktemp("keys")))
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

"""Real nodes and ours that log in at each other by SASL, with right and wrong passwords."""

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka import Producer
from tests.interop.secured_cluster import NodeSecurity, SecuredCluster
from tests.support.fixtures import JarsOf
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind
from tests.support.ports import free_ports
from tests.support.sasl_clients import PLAIN_MODULE, SCRAM_MODULE
from tests.support.tls_nodes import Keys
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = pytest.mark.slow


class Release(NamedTuple):
    """A release of the real node, the protocol, and the options for the release's level."""

    name: str
    protocol: str
    level: Sequence[str]


VOTERS: Final[Mapping[int, Kind]] = {1: "kvorum", 2: "kafka", 3: "kvorum"}
BROKERS: Final[Mapping[int, Kind]] = {11: "kafka", 12: "kvorum"}
TOPIC: Final = "shared"
PARTITIONS: Final = 4
RECORDS: Final = 400
PASSWORD: Final = "secret of nodes"
SESSION_MS: Final = 2_000
SESSION_ENDED: Final = "the session of its client has ended"
"""The reason for which a node of ours closes a connection after the end of its session."""
SCRAM: Final = "SCRAM-SHA-512"
AT_CONTROLLERS: Final = "listener.name.controller.plain.sasl.jaas.config"
AT_BROKERS: Final = "listener.name.secret.scram-sha-512.sasl.jaas.config"
RELEASES: Final = (
    Release("4.4.0", "SASL_PLAINTEXT", ()),
    Release("node-3.9.1", "SASL_SSL", ("--release-version", "3.9-IV0")),
)
REFUSAL: Final = re.compile(
    "failed authentication due to: Authentication failed: Invalid username or password .*others="
)
"""A line of ours; it counts the refusals since the one before."""
FETCHER_REFUSAL: Final = (
    f"invalid credentials with SASL mechanism {SCRAM} client_id=broker-14-fetcher"
)


def login(module: str, password: str, more: str = "") -> str:
    return f'{module} required username="node" password="{password}"{more};'


def by_sasl(protocol: str, keys: Keys) -> NodeSecurity:
    """Return PLAIN at controllers, and SCRAM at brokers, whose users are in the metadata."""
    stores = keys.settings() if protocol == "SASL_SSL" else {}
    return NodeSecurity(
        protocol=protocol,
        settings={
            **stores,
            "sasl.enabled.mechanisms": SCRAM,
            "connections.max.reauth.ms": str(SESSION_MS),
            "sasl.mechanism.controller.protocol": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": SCRAM,
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            AT_CONTROLLERS: login(PLAIN_MODULE, PASSWORD, f' user_node="{PASSWORD}"'),
            AT_BROKERS: login(SCRAM_MODULE, PASSWORD),
        },
        super_users="User:node;User:admin",
        client={
            "security.protocol": protocol,
            "sasl.mechanism": SCRAM,
            "sasl.username": "admin",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(keys.trusted),
        },
        format_options=[
            word
            for user in ("node", "admin")
            for word in ("--add-scram", f"{SCRAM}=[name={user},password={PASSWORD}]")
        ],
    )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def cluster(
    keys: Keys, java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredCluster]:
    security = by_sasl("SASL_SSL", keys)
    folder = tmp_path_factory.mktemp("nodes")
    made = SecuredCluster(folder, security, java, kafka_tools, VOTERS, BROKERS)
    with made.running():
        yield made


def test_all_replicate_serve_and_coordinate_by_sasl(cluster: SecuredCluster) -> None:
    cluster.exchange_records(TOPIC, partitions=PARTITIONS, records=RECORDS)


def test_another_voter_leads_once_the_leader_is_gone(cluster: SecuredCluster) -> None:
    for node in cluster.controllers.values():
        node.kill()
        cluster.create(f"without-{node.node_id}", 1)
        node.start()


def test_a_broker_with_a_wrong_password_retries_while_the_others_go_on(
    cluster: SecuredCluster,
) -> None:
    wrong = {AT_CONTROLLERS: login(PLAIN_MODULE, "secret of others")}
    stranger = cluster.node(13, "kvorum", "broker", *free_ports(1), more=wrong)
    stranger.launch()
    try:
        wait_for(lambda: REFUSAL.search(stranger.log_text), "it is refused again and again")
        cluster.create("meanwhile", 1)
        assert stranger.process.is_running
    finally:
        stranger.kill()
    stranger.configure({AT_CONTROLLERS: login(PLAIN_MODULE, PASSWORD)})
    with stranger:
        assert set(cluster.admin().list_topics().brokers) >= {*BROKERS, 13}


def test_a_follower_with_a_wrong_password_has_no_records_until_it_is_right(
    cluster: SecuredCluster,
) -> None:
    wrong = {AT_BROKERS: login(SCRAM_MODULE, "secret of others")}
    follower = cluster.node(14, "kvorum", "broker", *free_ports(1), more=wrong)
    admin_classes = importlib.import_module("confluent_kafka.admin")
    topic = admin_classes.NewTopic("followed", 1, replica_assignment=[[*BROKERS, follower.node_id]])
    producer = Producer({**cluster.client, "acks": "all"})
    try:
        follower.start()
        admin = cluster.admin()
        admin.create_topics([topic])["followed"].result(PATIENCE_S)
        producer.produce("followed", b"once all replicas have it")
        wait_for(lambda: FETCHER_REFUSAL in follower.log_text, "the follower's login is refused")
        assert producer.flush(0) == 1
    finally:
        follower.kill()
    follower.configure({AT_BROKERS: login(SCRAM_MODULE, PASSWORD)})
    with follower:
        assert producer.flush(PATIENCE_S) == 0


def test_no_node_sends_a_request_after_the_end_of_its_session(cluster: SecuredCluster) -> None:
    ours = [*cluster.controllers.values(), *cluster.brokers.values()]
    assert [node.node_id for node in ours if SESSION_ENDED in node.log_text] == []


def test_no_node_logs_a_password(cluster: SecuredCluster) -> None:
    logs = {path: path.read_text() for path in cluster.folder.glob("*/output.txt")}
    assert len(logs) > len(VOTERS)
    assert {path for path, text in logs.items() if "secret of" in text} == set()


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
@pytest.mark.parametrize(
    ("voter", "broker"), [("kvorum", "kafka"), ("kafka", "kvorum")], ids=["real broker", "ours"]
)
def test_a_broker_and_a_controller_of_the_other_kind_log_in(
    keys: Keys,
    java: Java,
    kafka_jars: JarsOf,
    tmp_path: Path,
    voter: Kind,
    broker: Kind,
    release: Release,
) -> None:
    security = by_sasl(release.protocol, keys)
    at_level = replace(security, format_options=[*security.format_options, *release.level])
    runtime = Java(java.executable, kafka_jars(release.name))
    with ToolRunner(runtime) as tools:
        made = SecuredCluster(tmp_path, at_level, runtime, tools, {1: voter}, {11: broker})
        with made.running():
            made.exchange_records(TOPIC, partitions=PARTITIONS, records=RECORDS)

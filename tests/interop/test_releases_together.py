"""Controllers and brokers of ours, of the reference release and of an older one, in one cluster."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import KafkaException
from tests.interop.clients.confluent import ConfluentDriver
from tests.interop.quorum_tools import without_features_served_in_part
from tests.interop.traffic import Traffic, read_all
from tests.support.fixtures import JarsOf
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import LEVELS_OF_OURS, NO_VOTERS, STANDALONE, Node
from tests.support.quorum.quorum import Described, Quorum, controllers
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LEVELS: Final = {"4.3.1": "4.3-IV0", "node-4.0.0": "4.0-IV3", "node-3.9.1": "3.9-IV0"}
"""Older releases, with the last metadata.version that each knows."""
OURS, REFERENCE, OLDER = 1, 2, 3
ROUNDS_MAX: Final = 30
TOPIC: Final = "of-all"
PARTITIONS: Final = 3
BROKER_SETTINGS: Final = {"offsets.topic.replication.factor": "3"}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A controller and a broker of each kind, and the tools of the older release."""

    quorum: Quorum
    brokers: dict[int, Node]
    tools: ToolRunner

    @property
    def servers(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())


@pytest.fixture(params=LEVELS)
def cluster(
    request: pytest.FixtureRequest,
    java: Java,
    kafka_jars: JarsOf,
    kafka_tools: ToolRunner,
    tmp_path: Path,
) -> Iterator[Cluster]:
    """A running cluster at the level of the older release."""
    older = Java(java.executable, kafka_jars(request.param))
    level = ("--release-version", LEVELS[request.param])
    runtimes = {OURS: None, REFERENCE: java, OLDER: older}
    made = [
        *controllers(tmp_path, [OURS]),
        *controllers(tmp_path, [REFERENCE], java=java),
        *controllers(tmp_path, [OLDER], java=older),
    ]
    brokers: dict[int, Node] = {}
    # A controller before 4.4 that finds records in the snapshot 0-0 takes them for a log and writes
    # none: the tool of its own release formats it. Later ones read what that has written.
    with ToolRunner(older) as tools, Quorum(made, tools) as quorum:
        quorum.form(quorum.members, *level)
        quorum.start()
        own = {
            **BROKER_SETTINGS,
            "process.roles": "broker",
            "controller.quorum.bootstrap.servers": quorum.bootstrap_servers,
        }
        try:
            for kind, runtime in runtimes.items():
                broker = Node(tmp_path / f"b{kind}", own, node_id=10 + kind, java=runtime)
                brokers[broker.node_id] = broker.format((*NO_VOTERS, *level))
                broker.launch()
            for node in (*quorum.members.values(), *brokers.values()):
                node.process.come_up()
            yield Cluster(quorum, brokers, tools)
        finally:
            for broker in brokers.values():
                broker.kill()


def test_each_leads_the_others_follow_and_its_tools_see_all_of_them(cluster: Cluster) -> None:
    servers = ("--bootstrap-server", cluster.servers)
    # A client drops a connection on which it asked when the broker joins that it leads to.
    wait_for(lambda: has_all_brokers(cluster), "three brokers are there", not_yet=(KafkaException,))
    size = ("--partitions", str(PARTITIONS), "--replication-factor", "3")
    cluster.tools.printed("kafka-topics", *servers, "--create", "--topic", TOPIC, *size)
    has_led: set[int] = set()
    with Traffic(cluster.servers, TOPIC, PARTITIONS) as traffic:
        for number in range(ROUNDS_MAX):
            leader_id = cluster.quorum.until("all follow a leader", all_follow).leader_id
            has_led.add(leader_id)
            name = f"by-{leader_id}-{number}"
            cluster.tools.printed("kafka-topics", *servers, "--create", "--topic", name)
            if has_led == {OURS, REFERENCE, OLDER}:
                break
            cluster.quorum.members[leader_id].stop()
            cluster.quorum.start(leader_id)
    assert has_led == {OURS, REFERENCE, OLDER}
    kept = read_all(cluster.servers, TOPIC, PARTITIONS)
    sent = sorted(traffic.acknowledged)
    assert [(index, number) for index in kept for number in kept[index]] == sent
    described = cluster.tools.printed("kafka-topics", *servers, "--describe", "--topic", TOPIC)
    for broker_id in cluster.brokers:
        assert f"Leader: {broker_id}" in described
    status = cluster.tools.printed(
        "kafka-metadata-quorum",
        "--bootstrap-controller",
        cluster.quorum.members[OURS].controller,
        "describe",
        "--status",
    )
    assert "CurrentVoters:" in status
    assert_logs_agree(cluster)


CHANGES_OF_LEVEL: Final = (
    *("describe", "upgrade --metadata 4.4-IV2", "describe", "upgrade --metadata 4.4-IV1"),
    *("downgrade --metadata 4.4-IV1", "downgrade --metadata 4.4-IV0"),
    *("downgrade --metadata 4.3-IV0", "downgrade --metadata 4.3-IV0 --unsafe", "describe"),
)
TO_THE_RELEASE: Final = "upgrade --release-version 4.4"


def test_a_cluster_goes_up_to_the_reference_release_and_not_back_as_on_kafka(
    java: Java, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    level = (*STANDALONE, "--release-version", LEVELS["4.3.1"])
    ours = Node(tmp_path / "ours").format(level)
    real = Node(tmp_path / "real", java=java).format((*level, *LEVELS_OF_OURS), tools=kafka_tools)
    with ours, real:
        refused = said_of(kafka_tools, ours, TO_THE_RELEASE)
        told = {
            node: [said_of(kafka_tools, node, step) for step in CHANGES_OF_LEVEL]
            for node in (ours, real)
        }
    assert told[ours] == told[real]
    assert "feature streams.version. Broker 1 does not support this feature" in refused
    levels = [
        re.findall(r"metadata.version.*FinalizedVersionLevel: (\S+)", text) for text in told[ours]
    ]
    assert [each for each in levels if each] == [["4.3-IV0"], ["4.4-IV2"], ["4.4-IV2"]]


def said_of(tools: ToolRunner, node: Node, step: str) -> str:
    """Return what kafka-features prints of a step, without the epoch of the metadata."""
    done = tools.run("kafka-features", "--bootstrap-server", node.address, *step.split())
    text = without_features_served_in_part(done.stdout)
    return re.sub(r"Epoch: \d+", "", f"{done.exit_code} {text} {done.stderr}")


def has_all_brokers(cluster: Cluster) -> bool:
    """Return whether ours shows every broker to clients."""
    with ConfluentDriver(cluster.brokers[10 + OURS].address) as driver:
        return driver.describe_cluster().brokers.keys() == cluster.brokers.keys()


def all_follow(found: Described) -> bool:
    """Return whether the three voters have all that is committed."""
    ends = [state.log_end_offset for state in found.current_voters]
    return len(ends) == len(LEVELS) and min(ends) >= found.high_watermark > 0


def assert_logs_agree(cluster: Cluster) -> None:
    for node in (*cluster.brokers.values(), *cluster.quorum.members.values()):
        node.stop()
    nodes = (*cluster.quorum.members.values(), *cluster.brokers.values())
    logs = [node.first_segment.read_bytes() for node in nodes]
    shared = min(map(len, logs))
    assert shared > 0
    assert len({log[:shared] for log in logs}) == 1

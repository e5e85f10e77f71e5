"""Kafka's own tools print the same about a kvorum node as about a real one."""

import re
import shlex
from typing import Final

import pytest
from tests.interop.quorum_tools import (
    Both,
    results_of,
    without_features_served_in_part,
    without_own_names,
)
from tests.support.kafka.java import ToolRunner
from tests.support.node import Node
from tests.support.page_blocks import page_block, typed

PLACES: Final = {
    "made": "--topic tools-made",
    "topic": "--entity-type topics --entity-name tools-made",
    "broker_1": "--entity-type brokers --entity-name 1",
    "all_brokers": "--entity-type brokers --entity-default",
    "user": "--entity-type users --entity-name tools-user",
    "client": "--entity-type clients --entity-name tools-client",
    "metrics": "--entity-type client-metrics --entity-name tools-metrics",
    "group": "--entity-type groups --entity-name tools-group",
}
STEPS: Final = (
    "kafka-topics {broker} --create {made} --partitions 2 --config retention.ms=3600000",
    "kafka-topics {broker} --create {made}",
    "kafka-topics {broker} --create {made} --if-not-exists",
    "kafka-topics {broker} --create --topic tools-wide --replication-factor 3",
    "kafka-topics {broker} --create --topic tools-bad --config retention.ms=soon",
    "kafka-topics {broker} --create --topic tools-assigned --replica-assignment 1,1",
    "kafka-topics {broker} --describe {made}",
    "kafka-topics {broker} --describe --topic tools-unknown",
    "kafka-topics {broker} --describe --topics-with-overrides --topic tools-.*",
    "kafka-topics {broker} --describe --unavailable-partitions --topic tools-.*",
    "kafka-topics {broker} --list --topic tools-.*",
    "kafka-topics {broker} --alter {made} --partitions 4",
    "kafka-topics {broker} --alter {made} --partitions 1",
    "kafka-topics {broker} --describe {made}",
    "kafka-configs {broker} --alter {topic} --add-config cleanup.policy=[compact,delete]",
    "kafka-configs {broker} --alter {topic} --add-config segment.bytes=1",
    "kafka-configs {broker} --alter {topic} --add-config no.such=1",
    "kafka-configs {broker} --describe {topic}",
    "kafka-configs {broker} --describe --all {topic}",
    "kafka-configs {broker} --alter {topic} --delete-config retention.ms",
    "kafka-configs {broker} --describe {topic}",
    "kafka-configs {broker} --describe {broker_1}",
    "kafka-configs {broker} --alter {broker_1} --add-config message.max.bytes=2097152",
    "kafka-configs {broker} --describe {broker_1}",
    "kafka-configs {broker} --describe {all_brokers}",
    "kafka-configs {broker} --alter {broker_1} --delete-config message.max.bytes",
    "kafka-configs {broker} --describe --entity-type topics --entity-name tools-unknown",
    "kafka-features {broker} describe",
    "kafka-features {controller} describe",
    "kafka-cluster cluster-id {broker}",
    "kafka-cluster cluster-id {controller}",
    "kafka-cluster list-endpoints {broker}",
    "kafka-cluster list-endpoints {controller}",
    "kafka-cluster unregister-controller {broker} --id 99",
    "kafka-cluster unregister-controller {controller} --id 1",
    "kafka-metadata-quorum {broker} describe --status",
    "kafka-metadata-quorum {controller} describe --status",
    "kafka-metadata-quorum {broker} describe --replication",
    "kafka-metadata-quorum {controller} describe --replication --human-readable",
    "kafka-reassign-partitions {broker} --list",
    "kafka-topics {broker} --create --topic tools_made",
    "kafka-topics {broker} --create --topic tools-none --partitions 0",
    "kafka-topics {broker} --create --topic __cluster_metadata",
    "kafka-topics {broker} --delete --topic __cluster_metadata",
    "kafka-topics {broker} --alter {made} --partitions 5 --replica-assignment 1,1,1,1,9",
    "kafka-topics {broker} --describe --under-replicated-partitions",
    "kafka-configs {controller} --alter {topic} --add-config max.message.bytes=2048",
    "kafka-configs {controller} --describe {broker_1}",
    "kafka-configs {broker} --alter {broker_1} --add-config message.max.bytes=x",
    "kafka-configs {broker} --alter {broker_1} --add-config no.such.key=x",
    "kafka-configs {broker} --alter {broker_1} --add-config log.dirs=/x",
    "kafka-configs {broker} --describe --entity-type brokers --entity-name 9",
    "kafka-configs {broker} --alter {all_brokers} --add-config log.retention.ms=100000",
    "kafka-configs {broker} --describe {all_brokers}",
    "kafka-configs {broker} --describe --all {topic}",
    "kafka-configs {broker} --describe --all {broker_1}",
    "kafka-configs {broker} --alter {all_brokers} --delete-config log.retention.ms",
    "kafka-configs {broker} --alter {user} --add-config SCRAM-SHA-256=[password=secret]",
    "kafka-configs {broker} --describe --entity-type users",
    "kafka-configs {broker} --alter {client} --add-config producer_byte_rate=1024",
    "kafka-configs {broker} --alter {client} --add-config no_such_rate=1024",
    "kafka-configs {broker} --describe {client}",
    "kafka-configs {broker} --alter {metrics} --add-config interval.ms=1000",
    "kafka-configs {broker} --describe --entity-type client-metrics",
    "kafka-configs {broker} --alter {group} --add-config consumer.session.timeout.ms=50000",
    "kafka-configs {broker} --describe {group}",
    "kafka-features {broker} upgrade --feature x=1",
    "kafka-features {broker} upgrade --feature eligible.leader.replicas.version=0",
    "kafka-features {broker} version-mapping --release-version 4.0-IV3",
    "kafka-features {broker} feature-dependencies --feature transaction.version=2",
    "kafka-cluster unregister {broker} --id 7",
    "kafka-cluster list-endpoints {broker} --include-fenced-brokers",
    "kafka-leader-election {broker} --election-type preferred {made} --partition 0",
    "kafka-leader-election {broker} --election-type preferred --topic tools-unknown --partition 0",
    "kafka-leader-election {broker} --election-type unclean --all-topic-partitions",
    "kafka-acls {broker} --list",
    "kafka-acls {broker} --add --allow-principal User:x --operation Read {made}",
    "kafka-transactions {broker} list",
    "kafka-topics {broker} --delete {made}",
    "kafka-topics {broker} --delete {made}",
)
"""The steps run in their order, since each builds on the last."""
CHANGES: Final = frozenset({"--create", "--alter", "--delete", "--add", "unregister", "upgrade"})
# Values that differ between two equal clusters: ids, offsets, times and counts of records.
DIRECTORY_OR_TOPIC_ID = re.compile(r"\b[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
QUORUM_NUMBER = re.compile(r"((?:HighWatermark|LeaderEpoch|MaxFollowerLagTimeMs|Epoch):\s+)-?\d+")
REPLICATION_LINE = re.compile(
    r"^(\d+\s+\S+)\s+\d+\s+\d+\s+.*?(Leader|Follower|Observer)\s*$", re.MULTILINE
)


def neutral(text: str, node: Node) -> str:
    text = without_own_names(text.replace(str(node.data), "<data>"), node)
    text = without_features_served_in_part(text)
    text = REPLICATION_LINE.sub(r"\1 <offsets and times> \2", text)
    text = QUORUM_NUMBER.sub(r"\1<number>", text)
    return re.sub(r"[ \t]+", " ", DIRECTORY_OR_TOPIC_ID.sub("<id>", text))


@pytest.fixture(scope="module")
def results(kafka_tools: ToolRunner, kvorum_node: Node, real_kafka: Node) -> list[Both]:
    """The output of the tools by step, for a kvorum node and for a real one."""
    nodes = (kvorum_node, real_kafka)
    return results_of(
        kafka_tools, nodes, STEPS, neutral=neutral, looks=CHANGES.isdisjoint, **PLACES
    )


@pytest.mark.parametrize("place", range(len(STEPS)), ids=STEPS)
def test_a_tool_prints_what_it_prints_about_a_real_node(results: list[Both], place: int) -> None:
    ours, theirs = results[place]
    assert ours == theirs


API_LINE = re.compile(r"^\t(\w+)\((\d+)\): (.*?),?$", re.MULTILINE)


@pytest.fixture(scope="module")
def api_lines(
    kafka_tools: ToolRunner, kvorum_node: Node, real_kafka: Node
) -> tuple[dict[str, str], dict[str, str]]:
    """The list of kafka-broker-api-versions by API: for our node, and for a real one."""
    listed: list[dict[str, str]] = []
    for node in (kvorum_node, real_kafka):
        result = kafka_tools.run("kafka-broker-api-versions", "--bootstrap-server", node.address)
        assert result.exit_code == 0, result.stderr
        listed.append({name: rest for name, _, rest in API_LINE.findall(result.stdout)})
    return listed[0], listed[1]


def test_each_api_is_served_in_the_versions_of_a_real_broker(
    api_lines: tuple[dict[str, str], dict[str, str]],
) -> None:
    ours, theirs = api_lines
    served = {name: versions for name, versions in ours.items() if versions != "UNSUPPORTED"}
    assert served == {name: theirs[name] for name in served}


def test_what_admin_clients_ask_for_is_served(
    api_lines: tuple[dict[str, str], dict[str, str]],
) -> None:
    asked_for = (
        *("ApiVersions", "Metadata", "DescribeCluster", "DescribeTopicPartitions"),
        *("CreateTopics", "DeleteTopics", "CreatePartitions", "DescribeQuorum"),
        *("DescribeConfigs", "AlterConfigs", "IncrementalAlterConfigs"),
        "ListPartitionReassignments",
    )
    ours, _ = api_lines
    assert [name for name in asked_for if ours.get(name, "UNSUPPORTED") == "UNSUPPORTED"] == []


def test_the_commands_of_readme(kafka_tools: ToolRunner, kvorum_node: Node) -> None:
    commands = typed(page_block("README.md", "console", "kafka-topics.sh"))
    create, describe = commands.replace("localhost:9092", kvorum_node.address).splitlines()
    printed = kafka_tools.printed(*tool_words(create))
    assert printed.splitlines()[-1] == "Created topic orders."
    assert "Topic: orders\tPartition: 2\tLeader: 1" in kafka_tools.printed(*tool_words(describe))


def tool_words(line: str) -> list[str]:
    """Return the name and the arguments of a tool, whose script is not run."""
    tool, *arguments = shlex.split(line)
    return [tool.removesuffix(".sh"), *arguments]

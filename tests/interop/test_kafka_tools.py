"""Kafka's own tools print the same about a kvorum node as about a real one."""

import re
from dataclasses import dataclass

import pytest
from tests.interop.kafka.server import RealKafka
from tests.interop.kafka.tools import ToolResult, ToolRunner
from tests.interop.kvorum_node import KvorumNode

pytestmark = pytest.mark.interop

BROKER = ("--bootstrap-server", "{broker}")
CONTROLLER = ("--bootstrap-controller", "{controller}")
TOPIC = ("--topic", "tools-made")
TOPIC_ENTITY = ("--entity-type", "topics", "--entity-name", "tools-made")
BROKER_ENTITY = ("--entity-type", "brokers", "--entity-name", "1")


@dataclass(frozen=True, slots=True)
class Step:
    """A tool with its arguments; the steps run in their order, since each builds on the last."""

    tool: str
    arguments: tuple[str, ...]


STEPS: dict[str, Step] = {
    "create": Step(
        "kafka-topics",
        (*BROKER, "--create", *TOPIC, "--partitions", "2", "--config", "retention.ms=3600000"),
    ),
    "create again": Step("kafka-topics", (*BROKER, "--create", *TOPIC)),
    "create if not there": Step("kafka-topics", (*BROKER, "--create", *TOPIC, "--if-not-exists")),
    "create with too many replicas": Step(
        "kafka-topics", (*BROKER, "--create", "--topic", "tools-wide", "--replication-factor", "3")
    ),
    "create with a bad value": Step(
        "kafka-topics",
        (*BROKER, "--create", "--topic", "tools-bad", "--config", "retention.ms=soon"),
    ),
    "create by assignment": Step(
        "kafka-topics",
        (*BROKER, "--create", "--topic", "tools-assigned", "--replica-assignment", "1,1"),
    ),
    "describe": Step("kafka-topics", (*BROKER, "--describe", *TOPIC)),
    "describe an unknown topic": Step(
        "kafka-topics", (*BROKER, "--describe", "--topic", "tools-unknown")
    ),
    "describe topics with overrides": Step(
        "kafka-topics", (*BROKER, "--describe", "--topics-with-overrides", "--topic", "tools-.*")
    ),
    "describe unavailable partitions": Step(
        "kafka-topics", (*BROKER, "--describe", "--unavailable-partitions", "--topic", "tools-.*")
    ),
    "list": Step("kafka-topics", (*BROKER, "--list", "--topic", "tools-.*")),
    "alter partitions": Step("kafka-topics", (*BROKER, "--alter", *TOPIC, "--partitions", "4")),
    "alter to fewer partitions": Step(
        "kafka-topics", (*BROKER, "--alter", *TOPIC, "--partitions", "1")
    ),
    "describe after alter": Step("kafka-topics", (*BROKER, "--describe", *TOPIC)),
    "set a topic's key": Step(
        "kafka-configs",
        (*BROKER, "--alter", *TOPIC_ENTITY, "--add-config", "cleanup.policy=[compact,delete]"),
    ),
    "set a bad value": Step(
        "kafka-configs", (*BROKER, "--alter", *TOPIC_ENTITY, "--add-config", "segment.bytes=1")
    ),
    "set an unknown key": Step(
        "kafka-configs", (*BROKER, "--alter", *TOPIC_ENTITY, "--add-config", "no.such=1")
    ),
    "describe a topic's keys": Step("kafka-configs", (*BROKER, "--describe", *TOPIC_ENTITY)),
    "describe all of a topic's keys": Step(
        "kafka-configs", (*BROKER, "--describe", "--all", *TOPIC_ENTITY)
    ),
    "delete a topic's key": Step(
        "kafka-configs", (*BROKER, "--alter", *TOPIC_ENTITY, "--delete-config", "retention.ms")
    ),
    "describe keys after that": Step("kafka-configs", (*BROKER, "--describe", *TOPIC_ENTITY)),
    "describe a broker's keys": Step("kafka-configs", (*BROKER, "--describe", *BROKER_ENTITY)),
    "set a broker's key": Step(
        "kafka-configs",
        (*BROKER, "--alter", *BROKER_ENTITY, "--add-config", "message.max.bytes=2097152"),
    ),
    "describe a broker's key": Step("kafka-configs", (*BROKER, "--describe", *BROKER_ENTITY)),
    "describe the brokers' default": Step(
        "kafka-configs", (*BROKER, "--describe", "--entity-type", "brokers", "--entity-default")
    ),
    "delete a broker's key": Step(
        "kafka-configs",
        (*BROKER, "--alter", *BROKER_ENTITY, "--delete-config", "message.max.bytes"),
    ),
    "describe an unknown topic's keys": Step(
        "kafka-configs",
        (*BROKER, "--describe", "--entity-type", "topics", "--entity-name", "tools-unknown"),
    ),
    "features": Step("kafka-features", (*BROKER, "describe")),
    "features by controller": Step("kafka-features", (*CONTROLLER, "describe")),
    "cluster id": Step("kafka-cluster", ("cluster-id", *BROKER)),
    "cluster id by controller": Step("kafka-cluster", ("cluster-id", *CONTROLLER)),
    "endpoints": Step("kafka-cluster", ("list-endpoints", *BROKER)),
    "endpoints by controller": Step("kafka-cluster", ("list-endpoints", *CONTROLLER)),
    "quorum status": Step("kafka-metadata-quorum", (*BROKER, "describe", "--status")),
    "quorum status by controller": Step(
        "kafka-metadata-quorum", (*CONTROLLER, "describe", "--status")
    ),
    "quorum replication": Step("kafka-metadata-quorum", (*BROKER, "describe", "--replication")),
    "quorum replication by controller": Step(
        "kafka-metadata-quorum", (*CONTROLLER, "describe", "--replication", "--human-readable")
    ),
    "reassignments": Step("kafka-reassign-partitions", (*BROKER, "--list")),
    "delete": Step("kafka-topics", (*BROKER, "--delete", *TOPIC)),
    "delete again": Step("kafka-topics", (*BROKER, "--delete", *TOPIC)),
}

# What differs between two clusters that are the same: ids, offsets, times and counts of records.
DIRECTORY_OR_TOPIC_ID = re.compile(r"\b[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
QUORUM_NUMBER = re.compile(r"((?:HighWatermark|LeaderEpoch|MaxFollowerLagTimeMs|Epoch):\s+)-?\d+")
REPLICATION_LINE = re.compile(
    r"^(\d+\s+\S+)\s+\d+\s+\d+\s+.*?(Leader|Follower|Observer)\s*$", re.MULTILINE
)
STACK_FRAME = re.compile(r"^\s+at .*\n", re.MULTILINE)
TIME_IN_LOG = re.compile(r"^\[\d{4}-[^\]]*\]", re.MULTILINE)


def _neutral(text: str, addresses: dict[str, str]) -> str:
    for name, address in addresses.items():
        host, _, port = address.partition(":")
        text = text.replace(address, f"<{name}>")
        text = re.sub(rf"{re.escape(host)}(\s+){port}", rf"<{name}>\1", text)
    text = STACK_FRAME.sub("", text)
    text = TIME_IN_LOG.sub("[time]", text)
    text = REPLICATION_LINE.sub(r"\1 <offsets and times> \2", text)
    text = QUORUM_NUMBER.sub(r"\1<number>", text)
    text = DIRECTORY_OR_TOPIC_ID.sub("<id>", text)
    return re.sub(r"[ \t]+", " ", text)


def _run_all(tools: ToolRunner, addresses: dict[str, str]) -> dict[str, ToolResult]:
    results: dict[str, ToolResult] = {}
    for name, step in STEPS.items():
        arguments = [argument.format_map(addresses) for argument in step.arguments]
        result = tools.run(step.tool, *arguments)
        results[name] = ToolResult(
            result.exit_code,
            _neutral(result.stdout, addresses),
            _neutral(result.stderr, addresses),
        )
    return results


@pytest.fixture(scope="module")
def ours(kafka_tools: ToolRunner, kvorum_node: KvorumNode) -> dict[str, ToolResult]:
    """What the tools said about a kvorum node, by step."""
    addresses = {
        "broker": kvorum_node.bootstrap_servers,
        "controller": kvorum_node.controller_servers,
    }
    return _run_all(kafka_tools, addresses)


@pytest.fixture(scope="module")
def theirs(kafka_tools: ToolRunner, real_kafka: RealKafka) -> dict[str, ToolResult]:
    """What the tools said about a real node, by step."""
    addresses = {
        "broker": real_kafka.bootstrap_servers,
        "controller": real_kafka.controller_servers,
    }
    return _run_all(kafka_tools, addresses)


@pytest.mark.parametrize("step", STEPS)
def test_a_tool_prints_what_it_prints_about_a_real_node(
    ours: dict[str, ToolResult], theirs: dict[str, ToolResult], step: str
) -> None:
    assert ours[step] == theirs[step]


API_LINE = re.compile(r"^\t(\w+)\((\d+)\): (.*?),?$", re.MULTILINE)


@pytest.fixture(scope="module")
def api_lines(
    kafka_tools: ToolRunner, kvorum_node: KvorumNode, real_kafka: RealKafka
) -> tuple[dict[str, str], dict[str, str]]:
    """What kafka-broker-api-versions lists, by API: for our node, and for a real one."""
    listed: list[dict[str, str]] = []
    for node in (kvorum_node, real_kafka):
        result = kafka_tools.run(
            "kafka-broker-api-versions", "--bootstrap-server", node.bootstrap_servers
        )
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
    asked_for = {
        "ApiVersions",
        "Metadata",
        "DescribeCluster",
        "DescribeTopicPartitions",
        "CreateTopics",
        "DeleteTopics",
        "CreatePartitions",
        "DescribeConfigs",
        "AlterConfigs",
        "IncrementalAlterConfigs",
        "DescribeQuorum",
        "ListPartitionReassignments",
    }
    ours, _ = api_lines
    assert {name for name in asked_for if ours.get(name, "UNSUPPORTED") == "UNSUPPORTED"} == set()

"""Kafka's own tools print the same about a kvorum node as about a real one."""

import re
from pathlib import Path

import pytest
from tests.interop.tool_steps import STEPS, Step
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.node import Node
from tests.support.waiting import are_alike, asked_until

# Values that differ between two equal clusters: ids, offsets, times and counts of records.
DIRECTORY_OR_TOPIC_ID = re.compile(r"\b[A-Za-z0-9_-]{22}(?![A-Za-z0-9_-])")
QUORUM_NUMBER = re.compile(r"((?:HighWatermark|LeaderEpoch|MaxFollowerLagTimeMs|Epoch):\s+)-?\d+")
REPLICATION_LINE = re.compile(
    r"^(\d+\s+\S+)\s+\d+\s+\d+\s+.*?(Leader|Follower|Observer)\s*$", re.MULTILINE
)
CLIENT_NUMBER = re.compile(r"(clientId=adminclient-)\d+")
STACK_FRAME = re.compile(r"^\s+at .*\n", re.MULTILINE)
TIME_IN_LOG = re.compile(r"^\[\d{4}-[^\]]*\]", re.MULTILINE)


def _neutral(text: str, addresses: dict[str, str], data: Path) -> str:
    text = text.replace(str(data), "<data>")
    for name, address in addresses.items():
        host, _, port = address.partition(":")
        text = text.replace(address, f"<{name}>")
        text = re.sub(rf"{re.escape(host)}(\s+){port}", rf"<{name}>\1", text)
    text = CLIENT_NUMBER.sub(r"\1<number>", text)
    text = STACK_FRAME.sub("", text)
    text = TIME_IN_LOG.sub("[time]", text)
    text = REPLICATION_LINE.sub(r"\1 <offsets and times> \2", text)
    text = QUORUM_NUMBER.sub(r"\1<number>", text)
    text = DIRECTORY_OR_TOPIC_ID.sub("<id>", text)
    return re.sub(r"[ \t]+", " ", text)


def _run(tools: ToolRunner, node: Node, step: Step) -> ToolResult:
    addresses = {"broker": node.address, "controller": node.controller}
    arguments = [argument.format_map(addresses) for argument in step.arguments]
    result = tools.run(step.tool, *arguments)
    return ToolResult(
        result.exit_code,
        _neutral(result.stdout, addresses, node.data),
        _neutral(result.stderr, addresses, node.data),
    )


@pytest.fixture(scope="module")
def results(
    kafka_tools: ToolRunner, kvorum_node: Node, real_kafka: Node
) -> dict[str, tuple[ToolResult, ToolResult]]:
    """The output of the tools by step, for a kvorum node and for a real one.

    A broker of either kind shows a change a moment after the controller promised it, so what only
    reads is asked again until both have settled.
    """
    found: dict[str, tuple[ToolResult, ToolResult]] = {}
    for name, step in STEPS.items():

        def ask(step: Step = step) -> tuple[ToolResult, ToolResult]:
            ours, theirs = (_run(kafka_tools, node, step) for node in (kvorum_node, real_kafka))
            return ours, theirs

        found[name] = ask() if step.is_change else asked_until(ask, are_alike, f"{name}: alike")
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_tool_prints_what_it_prints_about_a_real_node(
    results: dict[str, tuple[ToolResult, ToolResult]], step: str
) -> None:
    ours, theirs = results[step]
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

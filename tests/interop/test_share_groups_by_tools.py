"""Kafka's tools for share groups, on our node and beside a real one: they print the same."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import ToolResult, ToolRunner
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

pytestmark = pytest.mark.slow

COUNT: Final = 30
LINES: Final = [f"value-{number}" for number in range(COUNT)]
GROUP: Final = "shared-by-tools"
TOPIC: Final = "read-by-tools"
SETTINGS: Final = {
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
_EMPTY: Final = "Empty"


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes, kafka_tools: ToolRunner) -> Iterator[tuple[str, str]]:
    """The addresses of a real node and of ours, on each of which a group has read all records."""
    with both_nodes(SETTINGS) as (real, ours):
        for servers in (real.address, ours.address):
            make_topics(servers, TopicWish(TOPIC))
            begun = run("kafka-configs", servers, kafka_tools, *begin_at_start(GROUP))
            assert begun.exit_code == 0, begun.stderr
            kafka_tools.printed(
                "kafka-console-producer",
                "--bootstrap-server",
                servers,
                "--topic",
                TOPIC,
                stdin="".join(f"{line}\n" for line in LINES),
            )
            assert consume(servers, kafka_tools).stdout.splitlines() == LINES
            wait_for(partial(is_empty, servers), "the member has left")
        yield real.address, ours.address


def begin_at_start(group: str) -> list[str]:
    """Return the options of kafka-configs by which a group reads from the start of the log."""
    wish = "share.auto.offset.reset=earliest"
    return ["--alter", "--group", group, "--add-config", wish]


def consume(servers: str, tools: ToolRunner) -> ToolResult:
    """Read all records as the group's only member, which accepts them and leaves."""
    return run(
        "kafka-console-share-consumer",
        servers,
        tools,
        *("--topic", TOPIC, "--group", GROUP),
        *("--max-messages", str(COUNT), "--timeout-ms", "30000"),
    )


def is_empty(servers: str) -> bool:
    with RawClient(servers) as client:
        found = client.ask(ListGroupsRequest(), ListGroupsResponse, 5)
    return {one.group_id: one.group_state for one in found.groups}.get(GROUP) == _EMPTY


def run(tool: str, servers: str, tools: ToolRunner, *arguments: str) -> ToolResult:
    return tools.run(tool, "--bootstrap-server", servers, *arguments)


def common(result: ToolResult, servers: str) -> ToolResult:
    """Return what a tool printed without addresses, generated ids, and widths of columns."""
    texts = (result.stdout, result.stderr)
    masked = [
        re.sub(
            r"[\w-]{22}(?=\s)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "<id>",
            text.replace(servers.partition(":")[2], "<port>"),
        )
        for text in texts
    ]
    masked = [re.sub(r"\[\d{4}-\d\d-\d\d [\d:,]+\]", "<time>", text) for text in masked]
    squeezed = [re.sub(r" +", " ", re.sub(r"\(id: .*?\)", "", text)) for text in masked]
    return ToolResult(result.exit_code, *squeezed)


def print_the_same(nodes: tuple[str, str], tools: ToolRunner, line: str) -> ToolResult:
    """Run kafka-share-groups on both nodes, and return what it printed."""
    theirs, ours = (
        common(run("kafka-share-groups", one, tools, *line.split()), one) for one in nodes
    )
    assert ours == theirs, line
    return ours


@pytest.mark.parametrize(
    "line",
    [
        *("--list", "--list --state", "--list --state empty", "--list --state stable"),
        f"--describe --group {GROUP}",
        f"--describe --group {GROUP} --offsets --verbose",
        *(f"--describe --group {GROUP} --members", f"--describe --group {GROUP} --state"),
        f"--describe --group {GROUP} --members --verbose",
        f"--describe --group {GROUP} --state --verbose",
        *("--describe --all-groups --offsets", "--describe --group never-heard-of"),
        "--describe --all-groups --state",
        "--delete --group never-heard-of",
        f"--delete-offsets --group {GROUP} --topic never-heard-of",
        f"--reset-offsets --group {GROUP} --topic never-heard-of --to-latest --execute",
        f"--reset-offsets --group {GROUP} --topic {TOPIC}",
        "--reset-offsets --group another --all-topics --to-earliest --dry-run",
    ],
)
def test_groups_are_listed_and_described(
    nodes: tuple[str, str], kafka_tools: ToolRunner, line: str
) -> None:
    print_the_same(nodes, kafka_tools, line)


def test_nothing_lags_behind_a_member_that_has_accepted_all(
    nodes: tuple[str, str], kafka_tools: ToolRunner
) -> None:
    """The start offset is written before it moves, as on the real node."""
    described = print_the_same(nodes, kafka_tools, f"--describe --group {GROUP} --verbose")
    (line,) = [line for line in described.stdout.splitlines() if line.startswith(GROUP)]
    lag = line.split()[-1]
    assert lag == "0"


@pytest.mark.parametrize(
    "reset",
    [
        *("--to-earliest", "--to-latest", "--to-offset 7", "--to-offset 700", "--to-current"),
        *("--to-datetime 2020-01-01T00:00:00.000", "--to-datetime 2100-01-01T00:00:00.000"),
    ],
)
def test_offsets_are_reset(nodes: tuple[str, str], kafka_tools: ToolRunner, reset: str) -> None:
    for how in ("--dry-run", "--execute"):
        line = f"--reset-offsets --group {GROUP} --topic {TOPIC} {reset} {how}"
        print_the_same(nodes, kafka_tools, line)
    print_the_same(nodes, kafka_tools, f"--describe --group {GROUP}")


def test_offsets_are_reset_from_a_file_and_deleted_with_their_group(
    nodes: tuple[str, str], kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    export = f"--reset-offsets --group {GROUP} --all-topics --to-earliest --dry-run --export"
    exported = print_the_same(nodes, kafka_tools, export)
    file = tmp_path / "offsets.csv"
    file.write_text(exported.stdout)
    from_file = f"--reset-offsets --group {GROUP} --from-file {file} --execute"
    print_the_same(nodes, kafka_tools, from_file)
    for line in (
        f"--delete-offsets --group {GROUP} --topic {TOPIC}",
        f"--describe --group {GROUP}",
        f"--delete --group {GROUP}",
        "--list",
    ):
        print_the_same(nodes, kafka_tools, line)

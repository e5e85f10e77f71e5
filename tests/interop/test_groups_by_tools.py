"""Kafka's tools for groups, on our node and beside a real one: they print the same."""

import importlib
import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import make_topics, send
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java, ToolResult, ToolRunner
from tests.support.node import QUICK, BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import PATIENCE_S, Threads, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

COUNT: Final = 30
LINES: Final = [f"value-{number}" for number in range(COUNT)]
GROUP: Final = "by-tools"
TOPIC: Final = "read-by-tools"
CONSUMER_GROUP: Final = "of-the-consumer-protocol"
EPOCH_OF_BOTH: Final = 3
"""The epoch of a group with two members, when the expression of the second one is resolved."""
ALL: Final = ("--group", GROUP, "--topic", TOPIC)
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
RESETS: Final = (
    *("--to-earliest", "--to-latest", "--to-offset 7", "--to-offset 700", "--shift-by -3"),
    *("--shift-by 500", "--to-current", "--by-duration PT1H"),
    *("--to-datetime 2020-01-01T00:00:00.000", "--to-datetime 2100-01-01T00:00:00.000"),
)


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes, kafka_tools: ToolRunner) -> Iterator[tuple[str, str]]:
    """The addresses of a real node and of ours, each with the topic and its records."""
    with both_nodes(SETTINGS) as (real, ours):
        for servers in (real.address, ours.address):
            make_topics(servers, TopicWish(TOPIC))
            kafka_tools.printed(
                "kafka-console-producer",
                "--bootstrap-server",
                servers,
                "--topic",
                TOPIC,
                stdin="".join(f"{line}\n" for line in LINES),
            )
            assert consume(servers, kafka_tools).stdout.splitlines() == LINES
        yield real.address, ours.address


@pytest.fixture
def read(nodes: tuple[str, str], kafka_tools: ToolRunner) -> None:
    """The group has read all records, and has no member."""
    for servers in nodes:
        done = groups(servers, kafka_tools, "--reset-offsets", *ALL, "--to-latest", "--execute")
        assert done.exit_code == 0


def consume(servers: str, tools: ToolRunner) -> ToolResult:
    """Read all records as the group's only member, which commits and leaves."""
    return tools.run(
        "kafka-console-consumer",
        "--bootstrap-server",
        servers,
        "--topic",
        TOPIC,
        "--group",
        GROUP,
        "--from-beginning",
        "--max-messages",
        str(COUNT),
        "--timeout-ms",
        "30000",
    )


def groups(servers: str, tools: ToolRunner, *arguments: str) -> ToolResult:
    return tools.run("kafka-consumer-groups", "--bootstrap-server", servers, *arguments)


def common(result: ToolResult, servers: str) -> ToolResult:
    """Return what a tool printed without addresses, generated ids, and widths of columns."""
    texts = (result.stdout, result.stderr)
    masked = [
        re.sub(
            r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "<id>",
            text.replace(servers.partition(":")[2], "<port>"),
        )
        for text in texts
    ]
    masked = [re.sub(r"\[\d{4}-\d\d-\d\d [\d:,]+\]", "<time>", text) for text in masked]
    squeezed = [re.sub(r" +", " ", re.sub(r"\(id: .*?\)", "", text)) for text in masked]
    return ToolResult(result.exit_code, *squeezed)


def print_the_same(nodes: tuple[str, str], tools: ToolRunner, *arguments: str) -> ToolResult:
    """Run the tool on both nodes, and return what it printed."""
    theirs, ours = (common(groups(one, tools, *arguments), one) for one in nodes)
    assert ours == theirs, arguments
    return ours


@pytest.mark.usefixtures("read")
def test_groups_are_listed_and_described(nodes: tuple[str, str], kafka_tools: ToolRunner) -> None:
    for line in (
        *("--list", "--list --state", "--list --state stable", "--list --type"),
        *("--list --type classic", f"--describe --group {GROUP}"),
        *(f"--describe --group {GROUP} --members", f"--describe --group {GROUP} --state"),
        *("--describe --all-groups --offsets", "--describe --group never-heard-of"),
    ):
        print_the_same(nodes, kafka_tools, *line.split())
    described = print_the_same(nodes, kafka_tools, "--describe", "--group", GROUP)
    assert f"{GROUP} {TOPIC} 0 {COUNT} {COUNT} 0" in described.stdout


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.usefixtures("read")
def test_offsets_are_reset(nodes: tuple[str, str], kafka_tools: ToolRunner, reset: str) -> None:
    for how in ("--dry-run", "--execute"):
        print_the_same(nodes, kafka_tools, "--reset-offsets", *ALL, *reset.split(), how)
    print_the_same(nodes, kafka_tools, "--describe", "--group", GROUP)


@pytest.mark.usefixtures("read")
def test_offsets_are_reset_from_a_file(
    nodes: tuple[str, str], kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{TOPIC},0,11\n", encoding="utf-8")
    whole = ("--group", GROUP, "--from-file", str(file), "--execute")
    print_the_same(nodes, kafka_tools, "--reset-offsets", *whole)
    described = print_the_same(nodes, kafka_tools, "--describe", "--group", GROUP)
    assert f"{GROUP} {TOPIC} 0 11 {COUNT} {COUNT - 11}" in described.stdout
    exported = print_the_same(
        nodes, kafka_tools, "--reset-offsets", *ALL, "--to-current", "--export"
    )
    assert f"{TOPIC},0,11" in exported.stdout


@pytest.mark.usefixtures("read")
def test_offsets_and_groups_are_deleted(nodes: tuple[str, str], kafka_tools: ToolRunner) -> None:
    print_the_same(nodes, kafka_tools, "--delete-offsets", *ALL)
    print_the_same(nodes, kafka_tools, "--describe", "--group", GROUP)
    print_the_same(nodes, kafka_tools, "--delete", "--group", GROUP)
    print_the_same(nodes, kafka_tools, "--list")
    print_the_same(nodes, kafka_tools, "--delete", "--group", GROUP)


def test_a_group_with_a_member_is_neither_reset_nor_deleted(
    nodes: tuple[str, str], kafka_tools: ToolRunner, java: Java
) -> None:
    with ToolRunner(java) as one, ToolRunner(java) as other:
        consumers = Threads()
        for tools, servers in zip((one, other), nodes, strict=True):
            consumers.start(verify, tools, servers)

        def has_read_all(servers: str) -> bool:
            described = groups(servers, kafka_tools, "--describe", "--group", GROUP)
            return f"{TOPIC} 0 {COUNT} {COUNT} 0 verifiable-" in common(described, servers).stdout

        for servers in nodes:
            wait_for(partial(has_read_all, servers), "the member has read and committed")
        for arguments in (
            ("--describe", "--group", GROUP),
            ("--describe", "--group", GROUP, "--members", "--verbose"),
            ("--describe", "--group", GROUP, "--state"),
            ("--reset-offsets", *ALL, "--to-earliest", "--execute"),
            ("--delete-offsets", *ALL),
            ("--delete", "--group", GROUP),
        ):
            print_the_same(nodes, kafka_tools, *arguments)
    consumers.join()


def heartbeat(servers: str, member_id: str, epoch: int, **fields: Any) -> None:
    """Send a heartbeat of a member of `CONSUMER_GROUP`, which is to be accepted."""
    request = ConsumerGroupHeartbeatRequest(CONSUMER_GROUP, member_id, epoch, **fields)
    with RawClient(servers) as client:
        response = client.ask(request, ConsumerGroupHeartbeatResponse, 1)
    assert response.error_code == ErrorCode.NONE, response


def have_members_join(servers: str) -> None:
    """Have a static member and one with a regular expression join, and wait for their targets."""
    joining: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
    heartbeat(servers, "static", 0, instance_id="i", subscribed_topic_names=[TOPIC], **joining)
    heartbeat(servers, "by-regex", 0, subscribed_topic_regex="read-.*", **joining)

    def are_stable() -> bool | None:
        with RawClient(servers) as client:
            request = ConsumerGroupDescribeRequest([CONSUMER_GROUP])
            (group,) = client.ask(request, ConsumerGroupDescribeResponse, 1).groups
        for member in group.members:
            heartbeat(
                servers, member.member_id, member.member_epoch, instance_id=member.instance_id
            )
        return (group.group_state, group.group_epoch) == ("Stable", EPOCH_OF_BOTH) or None

    wait_for(are_stable, "the members have their targets")


def test_a_group_of_the_consumer_protocol_is_described_and_kept(
    nodes: tuple[str, str], kafka_tools: ToolRunner
) -> None:
    for servers in nodes:
        have_members_join(servers)
    of_group = ("--group", CONSUMER_GROUP)
    for line in (
        *("--list --type", "--list --type consumer", "--list --state stable"),
        *("--describe", "--describe --verbose", "--describe --members"),
        *("--describe --members --verbose", "--describe --state", "--describe --state --verbose"),
        *(f"--delete-offsets --topic {TOPIC}", "--delete"),
    ):
        whole = line.split() if line.startswith("--list") else (*line.split(), *of_group)
        print_the_same(nodes, kafka_tools, *whole)
    found = print_the_same(nodes, kafka_tools, "--describe", "--members", "--verbose", *of_group)
    assert f"{CONSUMER_GROUP} static i " in found.stdout
    for servers in nodes:
        heartbeat(servers, "static", -1, instance_id="i")
        heartbeat(servers, "by-regex", -1)
    for line in ("--describe", "--describe --state --verbose", "--delete", "--list --type"):
        whole = line.split() if line.startswith("--list") else (*line.split(), *of_group)
        print_the_same(nodes, kafka_tools, *whole)


def verify(tools: ToolRunner, servers: str) -> None:
    """Run the verifiable consumer until its process is ended."""
    with pytest.raises(Exception, match="gave no answer"):
        tools.run(
            "org.apache.kafka.tools.VerifiableConsumer",
            "--bootstrap-server",
            servers,
            "--topic",
            TOPIC,
            "--group-id",
            GROUP,
            "--group-instance-id",
            "verifiable",
            "--reset-policy",
            "earliest",
        )


TOPIC_OF_BOTH: Final = "handed-over"
PARTITIONS: Final = 4
GROUPS: Final = ("one", "two", "grp-é")
BATCH: Final = 10
KILLS: Final = 3


def read_by(servers: str, group: str) -> list[int]:
    """Return what is new for a group, and commit each record that was read."""
    library: Any = importlib.import_module("confluent_kafka")
    consumer = library.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    values: list[int] = []
    with closing(consumer):
        consumer.subscribe([TOPIC_OF_BOTH])
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the group has no coordinator"
            if message.error() is not None:
                ended.add(message.partition())
                continue
            values.append(int(message.value()))
            consumer.commit(message, asynchronous=False)
    return sorted(values)


def use(servers: str, first: int) -> None:
    """Write records; every group reads those, and no other."""
    numbers = range(first, first + BATCH)
    placed = [{"value": b"%d" % number, "partition": number % PARTITIONS} for number in numbers]
    send(servers, TOPIC_OF_BOTH, placed)
    for group in GROUPS:
        assert read_by(servers, group) == list(numbers), group


@pytest.mark.slow
def test_groups_go_from_a_real_node_to_ours_and_back(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner
) -> None:
    with Node(tmp_path, SETTINGS, java=java).format(tools=kafka_tools) as real:
        make_topics(real.address, TopicWish(TOPIC_OF_BOTH, partitions=PARTITIONS))
        use(real.address, 0)
    with Node(tmp_path, SETTINGS) as ours:
        assert read_by(ours.address, "one") == []
        use(ours.address, BATCH)
    with Node(tmp_path, SETTINGS, java=java) as again:
        assert read_by(again.address, "two") == []
        use(again.address, 2 * BATCH)
        asked = ("--bootstrap-server", again.address, "--describe", "--group", "grp-é")
        described = kafka_tools.printed("kafka-consumer-groups", *asked)
        assert described.count(TOPIC_OF_BOTH) == PARTITIONS
    (log,) = (tmp_path / "data").glob("__consumer_offsets-47/*.log")
    assert "grp-é" in kafka_tools.dumped(log, "--offsets-decoder")


@pytest.mark.slow
def test_what_a_group_has_committed_outlives_every_kill(tmp_path: Path) -> None:
    node = Node(tmp_path, {**SETTINGS, **QUICK}).format()
    for number in range(KILLS):
        with node.process:
            if number == 0:
                make_topics(node.address, TopicWish(TOPIC_OF_BOTH, partitions=PARTITIONS))
            use(node.address, number * BATCH)
    with node:
        assert [read_by(node.address, group) for group in GROUPS] == [[], [], []]

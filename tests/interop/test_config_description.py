"""kafka-configs asks a kvorum node and a real one with the same settings; the answers are equal."""

import re
from collections.abc import Iterator

import pytest
from tests.support.kafka.tools import ToolRunner
from tests.support.node import BothNodes, Node

pytestmark = pytest.mark.sample


TOPIC = "described"
# Some of each kind: plain, in hours, negative hours, a secret, of a listener, unknown to Kafka.
SETTINGS = {
    "log.retention.hours": "-1",
    "log.roll.hours": "2",
    "log.cleanup.policy": "compact, delete",
    "compression.type": "zstd",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "ssl.key.password": "s3cret",
    "listener.name.plaintext.ssl.key.password": "s3cret",
    "listener.name.plaintext.max.connections": "77",
    "nobody.knows.this": "1",
    "group.consumer.session.timeout.ms": "50000",
    # Two keys that are only described where the broker sets them, or the group.
    "group.streams.num.warmup.replicas": "3",
}
CHANGES: tuple[tuple[str, ...], ...] = (
    ("brokers", "1", "log.retention.ms=7777,listener.name.plaintext.max.connections=55"),
    ("brokers", "", "log.segment.bytes=2000000,max.connections=1000"),
    ("topics", TOPIC, "segment.ms=99,cleanup.policy=[compact,delete]"),
    ("groups", "team", "consumer.session.timeout.ms=55000,streams.acceptable.recovery.lag=9"),
    ("client-metrics", "watch", "interval.ms=5000,metrics=[a.b,c]"),
)
ENTITIES: tuple[tuple[str, str], ...] = (
    ("brokers", "1"),
    ("brokers", ""),
    ("topics", TOPIC),
    ("groups", "team"),
    ("groups", "other"),
    ("client-metrics", "watch"),
)


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes, kafka_tools: ToolRunner) -> Iterator[tuple[Node, Node]]:
    """A kvorum node and a real one, with the same settings and the same changes."""
    with both_nodes(SETTINGS) as (theirs, ours):
        for node in (ours, theirs):
            prepare(kafka_tools, node)
        yield ours, theirs


def prepare(tools: ToolRunner, node: Node) -> None:
    server = ("--bootstrap-server", node.address)
    tools.printed("kafka-topics", *server, "--create", "--topic", TOPIC)
    for kind, name, change in CHANGES:
        altered = ("--alter", "--add-config", change, *entity(kind, name))
        tools.printed("kafka-configs", *server, *altered)


def entity(kind: str, name: str) -> tuple[str, ...]:
    chosen = ("--entity-name", name) if name else ("--entity-default",)
    return ("--entity-type", kind, *chosen)


def told(tools: ToolRunner, node: Node, *arguments: str) -> list[str]:
    server = ("--bootstrap-server", node.address)
    text = tools.printed("kafka-configs", *server, "--describe", *arguments)
    names = {node.address: "BROKER", node.controller: "CONTROLLER", str(node.folder): "FOLDER"}
    for own, name in names.items():
        text = text.replace(own, name)
    return sorted(line for line in text.splitlines() if not re.match(r"\[\d{4}-", line))


@pytest.mark.parametrize(("kind", "name"), ENTITIES)
@pytest.mark.parametrize("is_all", [False, True], ids=["set", "all"])
def test_both_nodes_describe_themselves_alike(
    nodes: tuple[Node, Node], kafka_tools: ToolRunner, kind: str, name: str, is_all: bool
) -> None:
    arguments = (*entity(kind, name), *(("--all",) if is_all else ()))
    ours, theirs = (told(kafka_tools, node, *arguments) for node in nodes)
    assert ours == theirs
    assert not any("s3cret" in line for line in ours)

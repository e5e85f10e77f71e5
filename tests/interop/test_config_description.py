"""kafka-configs asks a kvorum node and a real one with the same settings; the answers are equal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.lone_node import KvorumNode, RealKafka

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
}
CHANGES: tuple[tuple[str, ...], ...] = (
    ("brokers", "1", "log.retention.ms=7777,listener.name.plaintext.max.connections=55"),
    ("brokers", "", "log.segment.bytes=2000000,max.connections=1000"),
    ("topics", TOPIC, "segment.ms=99,cleanup.policy=[compact,delete]"),
    ("groups", "team", "consumer.session.timeout.ms=55000"),
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


class Node(NamedTuple):
    """One of the two, and what is its own in what it says."""

    server: str
    own: dict[str, str]


@pytest.fixture(scope="module")
def nodes(
    java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Node, Node]]:
    """A kvorum node and a real one, with the same settings and the same changes."""
    folders = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    with (
        KvorumNode(folders[0], SETTINGS) as ours,
        RealKafka(java=java, tools=kafka_tools, folder=folders[1], overrides=SETTINGS) as theirs,
    ):
        both = (described(ours, folders[0]), described(theirs, folders[1]))
        for node in both:
            prepare(kafka_tools, node)
        yield both


def described(node: KvorumNode | RealKafka, folder: Path) -> Node:
    own = {node.bootstrap_servers: "BROKER", node.controller_servers: "CONTROLLER"}
    return Node(node.bootstrap_servers, {**own, str(folder): "FOLDER"})


def prepare(tools: ToolRunner, node: Node) -> None:
    server = ("--bootstrap-server", node.server)
    made = tools.run("kafka-topics", *server, "--create", "--topic", TOPIC)
    assert made.exit_code == 0, made
    for kind, name, change in CHANGES:
        done = tools.run(
            "kafka-configs", *server, "--alter", "--add-config", change, *entity(kind, name)
        )
        assert done.exit_code == 0, done


def entity(kind: str, name: str) -> tuple[str, ...]:
    chosen = ("--entity-name", name) if name else ("--entity-default",)
    return ("--entity-type", kind, *chosen)


def told(tools: ToolRunner, node: Node, *arguments: str) -> list[str]:
    done: ToolResult = tools.run(
        "kafka-configs", "--bootstrap-server", node.server, "--describe", *arguments
    )
    assert done.exit_code == 0, done
    text = done.stdout
    for own, name in node.own.items():
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

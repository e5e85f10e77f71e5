"""Our description of a broker's keys against what a running Kafka node tells about its own."""

from __future__ import annotations

import re
from types import MappingProxyType

import pytest
from tests.interop.kafka.server import RealKafka
from tests.interop.kafka.tools import ToolRunner

from kvorum.metadata.config_definitions import (
    BrokerLayers,
    ConfigSource,
    DescribedConfig,
    describe_broker,
    describe_topic,
)
from kvorum.node.config import NodeConfig, load_properties

pytestmark = pytest.mark.interop

# The admin client has a name of its own for this one.
SOURCES = MappingProxyType({ConfigSource.TOPIC_CONFIG: "DYNAMIC_TOPIC_CONFIG"})
LINE = re.compile(r"  (?P<name>[^=]+)=(?P<rest>.* sensitive=.*)")


def printed(value: str | None) -> str:
    return "null" if value is None else value


def shown(entry: DescribedConfig) -> str:
    """Write an entry as kafka-configs prints it."""
    synonyms = ", ".join(
        f"{SOURCES.get(each.source, each.source.name)}:{each.name}={printed(each.value)}"
        for each in entry.synonyms
    )
    is_sensitive = str(entry.is_sensitive).lower()
    return f"{printed(entry.value)} sensitive={is_sensitive} synonyms={{{synonyms}}}"


def told(tools: ToolRunner, node: RealKafka, *entity: str) -> dict[str, str]:
    server = ("--bootstrap-server", node.bootstrap_servers)
    done = tools.run("kafka-configs", *server, "--describe", "--all", *entity)
    assert done.exit_code == 0, done.stderr
    found = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
    return {match["name"]: match["rest"] for match in found if match is not None}


@pytest.fixture
def layers(real_kafka: RealKafka) -> BrokerLayers:
    config = NodeConfig.from_properties(load_properties(real_kafka.files.properties))
    # With the ELR feature the first controller writes down the default it had.
    return BrokerLayers(static=config.texts, dynamic_default={"min.insync.replicas": "1"})


def test_a_broker_is_described_as_kafka_describes_it(
    real_kafka: RealKafka, kafka_tools: ToolRunner, layers: BrokerLayers
) -> None:
    theirs = told(kafka_tools, real_kafka, "--entity-type", "brokers", "--entity-name", "1")
    ours = {entry.name: shown(entry) for entry in describe_broker(layers)}
    assert ours == theirs
    assert len(ours) > 300


def test_a_topic_is_described_as_kafka_describes_it(
    real_kafka: RealKafka, kafka_tools: ToolRunner, layers: BrokerLayers
) -> None:
    server = ("--bootstrap-server", real_kafka.bootstrap_servers)
    own = {"cleanup.policy": "compact,delete", "segment.ms": "77", "compression.type": "zstd"}
    settings = [word for key, text in own.items() for word in ("--config", f"{key}={text}")]
    name = "config-description"
    made = kafka_tools.run("kafka-topics", *server, "--create", "--topic", name, *settings)
    assert made.exit_code == 0, made.stderr
    theirs = told(kafka_tools, real_kafka, "--entity-type", "topics", "--entity-name", name)
    assert {entry.name: shown(entry) for entry in describe_topic(own, layers)} == theirs

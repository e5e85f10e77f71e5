"""Our configuration keys, values and rules against those of Kafka's own classes."""

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from pathlib import Path

import pytest
from tests.interop.java_judge import ConfigJudge
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import BothNodes, Node

from kvorum.codegen.config_tables import modules
from kvorum.groups.modern_group.group_config import GroupProtocol, group_config
from kvorum.metadata import config_definitions
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigType,
    InvalidConfigError,
    convert_to_text,
    parse_value,
    topic_defaults,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from kvorum.metadata.configs_image import ConfigsImage, ResourceType, replay_config
from kvorum.node.config import NodeConfig
from kvorum.wire.messages.config_record import ConfigRecord

pytestmark = pytest.mark.sample


TABLES: Mapping[str, Mapping[str, ConfigDefinition]] = {
    "topic": TOPIC_CONFIGS,
    "broker": BROKER_CONFIGS,
    "group": GROUP_CONFIGS,
    "client_metrics": CLIENT_METRICS_CONFIGS,
}
NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
WORDS = (
    "", " ", "x", "true", "TRUE", " false ", "0", "1", "-1", "-2", "+5", "7.5", "1e3", "0x10",
    "2147483647", "2147483648", "-2147483649", "32767", "32768", "9223372036854775807",
    "9223372036854775808", "1048575", "1048576", "9", "10", "17", "18", "22", "23", "100000000",
    "0.5", "0.5f", "1.0d", "1.1", "-0.0", "NaN", "Infinity", "1e-5", "123456789.125", "0x1.8p1",
    "compact", "delete", "compact,delete", "delete , compact", "compact,compact", "a,,b", ",",
    "a,b ,c", "zstd", "GZIP", "gzip", "producer", "CreateTime", "LogAppendTime", "createtime",
    "*", "0:1,1:2", "0:1,,1:2", "0:1,*", "x:1", "earliest", "latest", "none", "by_duration:PT1H",
    "by_duration:P1DT-1H", "by_duration:PT-1S", "by_duration:", "by_duration:PT", "by_duration:P",
    "by_duration:pt1.5s", "read_committed", "upgrade", "UPGRADE", "consumer", "classic,consumer",
    "1@localhost:9093", "1@localhost", "localhost:9093", "x@localhost:9093", "1@[::1]:9093",
    "1@0.0.0.0:1", "1@a@b:1", "1@", "1@ho st:1", "SSL", "ssl", "required", "RS256", "es256",
    "broker", "controller", "broker,controller", "broker,foo", "1_000", "\u0661",
)  # fmt: skip


@pytest.fixture(scope="module")
def judge(java: Java) -> Iterator[ConfigJudge]:
    with ConfigJudge(java) as running:
        yield running


def test_the_tables_are_those_of_kafkas_classes(java: Java) -> None:
    told = "\n".join(java.answers("ConfigDefinitions"))
    folder = Path(config_definitions.__file__).parent
    for name, text in modules(json.loads(told)).items():
        assert (folder / name).read_text() == text, f"{name} is not current"


def our_value(definition: ConfigDefinition, text: str) -> str:
    try:
        return f"={convert_to_text(parse_value(definition, text))}"
    except InvalidConfigError as error:
        return f"!{error.message}"


@pytest.mark.parametrize("table", TABLES)
def test_every_value_is_read_and_refused_as_kafka_does(judge: ConfigJudge, table: str) -> None:
    different = [
        (definition.name, text, ours, theirs)
        for definition in TABLES[table].values()
        if definition.type is not ConfigType.CLASS
        for text in WORDS
        if (ours := our_value(definition, text))
        != (theirs := judge.ask("value", table, definition.name, text))
    ]
    assert different == []


def test_random_numbers_are_read_as_kafka_does(judge: ConfigJudge) -> None:
    source = random.Random(20)
    ratio = TOPIC_CONFIGS["min.cleanable.dirty.ratio"]
    unlimited = BROKER_CONFIGS["log.cleaner.io.max.bytes.per.second"]
    for _ in range(300):
        number = source.choice((source.random(), source.uniform(-2, 2), source.expovariate(1e-9)))
        text = f"{number:.{source.randint(1, 12)}g}"
        assert our_value(ratio, text) == judge.ask("value", "topic", ratio.name, text)
        assert our_value(unlimited, text) == judge.ask("value", "broker", unlimited.name, text)


REMOTE = {"remote.storage.enable": "true"}
TOPIC_CASES: tuple[tuple[dict[str, str], dict[str, str], dict[str, str]], ...] = (
    ({}, {}, {}),
    ({}, {}, {"foo": "1"}),
    ({}, {}, {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}),
    ({"log.cleaner.max.compaction.lag.ms": "4"}, {}, {"min.compaction.lag.ms": "5"}),
    ({}, {}, {"segment.bytes": "5", "cleanup.policy": "foo"}),
    ({}, {}, {"cleanup.policy": ""}),
    ({}, {}, REMOTE),
    ({"remote": "on"}, {}, REMOTE),
    ({"remote": "on"}, {}, {**REMOTE, "cleanup.policy": "compact"}),
    ({"remote": "on"}, {}, {**REMOTE, "retention.ms": "5", "local.retention.ms": "6"}),
    ({"remote": "on"}, {}, {**REMOTE, "retention.ms": "5", "local.retention.ms": "-1"}),
    ({"remote": "on"}, {}, {**REMOTE, "retention.bytes": "5", "local.retention.bytes": "6"}),
    (
        {"remote": "on"},
        {},
        {
            **REMOTE,
            "remote.log.copy.disable": "true",
            "retention.bytes": "5",
            "local.retention.bytes": "4",
        },
    ),
    ({}, REMOTE, {}),
    ({}, REMOTE, {"remote.log.delete.on.disable": "true"}),
)


def verdict(check: Callable[..., object], *arguments: object, **options: object) -> str:
    """Return what Kafka's side says of an accepted check, or of a refused one."""
    try:
        check(*arguments, **options)
    except InvalidConfigError as error:
        return f"!{error.message}"
    return "="


@pytest.mark.parametrize(("extra", "old", "new"), TOPIC_CASES)
def test_a_topics_keys_are_checked_together_as_kafka_does(
    judge: ConfigJudge, extra: dict[str, str], old: dict[str, str], new: dict[str, str]
) -> None:
    broker = NODE | extra
    if broker.pop("remote", None):
        broker["remote.log.storage.system.enable"] = "true"
        broker["remote.log.storage.manager.class.name"] = "x"
    found = verdict(
        validate_topic_configs,
        new,
        existing=old,
        defaults=topic_defaults(broker),
        is_remote_storage_enabled=broker.get("remote.log.storage.system.enable") == "true",
    )
    assert found == judge.ask("topic", broker, old, new)


@pytest.mark.parametrize(
    "broker",
    [
        {},
        {"log.retention.hours": "-1"},
        {"log.retention.minutes": "3", "log.retention.hours": "5"},
        {"log.retention.ms": "7", "log.retention.minutes": "3"},
        {"log.roll.hours": "2", "log.roll.jitter.hours": "1"},
        {"log.roll.ms": "9", "log.roll.jitter.ms": "3"},
        {"log.flush.scheduler.interval.ms": "11"},
        {"log.flush.interval.ms": "12", "log.flush.scheduler.interval.ms": "11"},
        {"log.cleanup.policy": "compact,delete", "log.cleaner.min.cleanable.ratio": "0.25"},
    ],
)
def test_broker_keys_become_topic_defaults_as_in_kafka(
    judge: ConfigJudge, broker: dict[str, str]
) -> None:
    for name, value in topic_defaults(NODE | broker).items():
        assert f"={convert_to_text(value)}" == judge.ask("defaults", NODE | broker, name), name


GROUP_CASES: tuple[dict[str, str], ...] = (
    {},
    {"foo": "1"},
    {"consumer.session.timeout.ms": "1"},
    {"consumer.session.timeout.ms": "100000000"},
    {"consumer.heartbeat.interval.ms": "1"},
    {"consumer.heartbeat.interval.ms": "100000000"},
    {"consumer.session.timeout.ms": "x"},
    {"share.session.timeout.ms": "45000", "share.heartbeat.interval.ms": "15000"},
    {"share.delivery.count.limit": "11"},
    {"share.record.lock.duration.ms": "1000"},
    {"share.partition.max.record.locks": "100000"},
    {"share.isolation.level": "read_committed"},
    {"streams.num.standby.replicas": "3"},
    {"streams.session.timeout.ms": "1"},
    {"streams.assignment.interval.ms": "1000000"},
    {"consumer.assignment.interval.ms": "1000000"},
    {"share.auto.offset.reset": "by_duration:PT1H"},
    {"share.auto.offset.reset": "sometime"},
    {"streams.rack.aware.assignment.tags": "zone, rack ,zone"},
    {"streams.rack.aware.assignment.tags": "zone,rack"},
    {"streams.assignor.name": "sticky"},
    {"streams.assignor.name": "other"},
    {"streams.num.warmup.replicas": "100"},
    {"streams.task.offset.interval.ms": "1"},
    {"errors.deadletterqueue.topic.name": "__letters"},
    {"errors.deadletterqueue.topic.name": "letters"},
)


@pytest.mark.parametrize("new", GROUP_CASES)
def test_a_groups_keys_are_checked_together_as_kafka_does(
    judge: ConfigJudge, new: dict[str, str]
) -> None:
    assert verdict(validate_group_configs, new, broker_texts=NODE) == judge.ask("group", NODE, new)


BOUNDS = {
    "group.consumer.min.session.timeout.ms": "4000",
    "group.consumer.max.assignment.interval.ms": "2000",
    "group.consumer.heartbeat.interval.ms": "7000",
}
SHARE_BOUNDS = {
    "group.share.max.session.timeout.ms": "90000",
    "group.share.session.timeout.ms": "50000",
    "group.share.heartbeat.interval.ms": "8000",
    "group.share.min.assignment.interval.ms": "10",
    "group.streams.max.heartbeat.interval.ms": "40000",
    "group.streams.min.session.timeout.ms": "20000",
}
NUMBERS = ("1", "1999", "2001", "4999", "5001", "15001", "39999", "41000", "45000", "60001", None)
KEYS = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)


def test_a_groups_values_are_checked_by_the_bounds_of_the_file(judge: ConfigJudge) -> None:
    source = random.Random(49)
    names = [name for kind in ("consumer", "share", "streams") for name in keys_of_kind(kind)]
    verdicts: set[str] = set()
    for _ in range(400):
        broker = NODE | source.choice(({}, BOUNDS, SHARE_BOUNDS))
        chosen = source.sample(names, source.choice((1, 1, 2, 4)))
        new = {name: source.choice(NUMBERS) or "14999" for name in chosen}
        found = verdict(validate_group_configs, new, broker_texts=broker)
        assert found == judge.ask("group", broker, new), (broker, new)
        verdicts.add(found)
    assert len(verdicts) > 10


def keys_of_kind(kind: str) -> list[str]:
    return [key.replace("consumer", kind) for key in KEYS]


def our_times(
    protocol: GroupProtocol,
    broker: Mapping[str, str],
    dynamic: Mapping[str, str],
    own: Mapping[str, str],
) -> str:
    coordinator = NodeConfig.from_properties(broker).groups.coordinator
    settings = coordinator.share if protocol is GroupProtocol.SHARE else coordinator.consumer
    values = [ConfigRecord(ResourceType.GROUP, "g", *each) for each in own.items()]
    values += [ConfigRecord(ResourceType.BROKER, "", *each) for each in dynamic.items()]
    configs = reduce(replay_config, values, ConfigsImage())
    found = group_config(configs, "g", protocol, settings, broker_id=1)
    return (
        f"={found.session_timeout_ms} {found.heartbeat_interval_ms} {found.assignment_interval_ms}"
    )


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_the_times_of_a_group_are_those_of_kafka(
    judge: ConfigJudge, protocol: GroupProtocol
) -> None:
    source = random.Random(48)
    keys = keys_of_kind(protocol.value)
    for _ in range(300):
        broker = NODE | source.choice(({}, BOUNDS, SHARE_BOUNDS))
        interval = source.choice(NUMBERS)
        given = {key: source.choice(NUMBERS) for key in keys}
        own = {key: text for key, text in given.items() if text is not None}
        dynamic = {} if interval is None else {f"group.{keys[2]}": interval}
        told = judge.ask(f"{protocol.value} group times", broker, dynamic, own)
        assert our_times(protocol, broker, dynamic, own) == told, (broker, dynamic, own)


METRICS_CASES: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {}),
    ("s", {}),
    ("s", {"foo": "1"}),
    ("s", {"interval.ms": "99"}),
    ("s", {"interval.ms": "3600001"}),
    ("s", {"interval.ms": "x"}),
    ("s", {"metrics": "a.b,*", "interval.ms": "100"}),
    ("s", {"metrics": "a,a"}),
    ("s", {"match": "client_id=a.*"}),
    ("s", {"match": "client=a"}),
    ("s", {"match": "client_id=["}),
    ("s", {"match": "client_id"}),
    ("s", {"match": "client_id=a=b"}),
    ("s", {"match": "client_id="}),
)


@pytest.mark.parametrize(("name", "new"), METRICS_CASES)
def test_a_subscription_is_checked_as_kafka_does(
    judge: ConfigJudge, name: str, new: dict[str, str]
) -> None:
    found = verdict(validate_client_metrics_configs, name, new)
    assert found == judge.ask("client_metrics", name, new)


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

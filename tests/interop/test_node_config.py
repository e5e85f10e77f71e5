"""Our reading of a properties file beside that of Kafka's KafkaConfig."""

import random
import re
from collections.abc import Iterator, Mapping

import pytest
from tests.interop.java_judge import ConfigJudge
from tests.support.kafka.java import Java

from kvorum.node.config import ConfigError, Listener, NodeConfig

pytestmark = pytest.mark.sample


BOTH = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
BROKER = BOTH | {"process.roles": "broker", "listeners": "PLAINTEXT://localhost:9092"}
CONTROLLER = BOTH | {"process.roles": "controller", "listeners": "CONTROLLER://localhost:9093"}
INSIDE = {
    "listeners": "INSIDE://localhost:9092,CONTROLLER://localhost:9093",
    "inter.broker.listener.name": "INSIDE",
    "listener.security.protocol.map": "INSIDE:SASL_SSL,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
}
"""Brokers that log in at each other."""
OF_INSIDE = "listener.name.inside.sasl.enabled.mechanisms"
PLAIN_MAP = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
SIMPLE_CLASS = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
UNIFORM_CLASS = "org.apache.kafka.coordinator.group.assignor.UniformAssignor"
VOTERS = "1@a:9093,2@b:9093"

# Values of a key of a combined node; None takes the key away.
VALUES: dict[str, tuple[str | None, ...]] = {
    "process.roles": (None, "", "zookeeper"),
    "node.id": (None, "-3", "one"),
    "broker.id": ("2",),
    "controller.listener.names": (
        *(None, "", "controller", "OTHER", "CONTROLLER,OTHER", "CONTROLLER,PLAINTEXT"),
    ),
    "controller.quorum.bootstrap.servers": (
        *(None, "localhost", "[::1]:9093,PLAINTEXT://b:1", "a b:1"),
    ),
    "controller.quorum.voters": (VOTERS, "2@b:9093", "1@b", "x@b:1", "1@0.0.0.0:9093"),
    "listeners": (
        "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
        *("PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9093", "PLAINTEXT://:0,CONTROLLER://:0"),
        *("plaintext://h:1,controller://h:2", "PLAINTEXT://h,CONTROLLER://h:2"),
        *("PLAINTEXT://h:99999999999,CONTROLLER://h:2", "PLAINTEXT://h:-1,CONTROLLER://h:2"),
        *("9092", "", "PLAINTEXT://h:1,PLAINTEXT://h:2,CONTROLLER://h:3"),
        *("PLAINTEXT://h:1,CONTROLLER://h:1", "PLAINTEXT://127.0.0.1:1,CONTROLLER://[::1]:1"),
        "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.2:1",
        "PLAINTEXT://127.0.0.1:1,CONTROLLER://[::1]:1,SSL://h:1",
        *("INTERNAL://h:1,CONTROLLER://h:2", "SSL://h:1,CONTROLLER://h:2"),
    ),
    "listener.security.protocol.map": (
        *(PLAIN_MAP, "PLAINTEXT:PLAINTEXT", "PLAINTEXT:PLAINTEXT,CONTROLLER:FOO", "PLAINTEXT"),
        "PLAINTEXT:PLAINTEXT , CONTROLLER:sasl_ssl",
    ),
    "inter.broker.listener.name": ("PLAINTEXT", "plaintext", "CONTROLLER", "NOBODY"),
    "security.inter.broker.protocol": ("SSL", "SECRET"),
    "advertised.listeners": (
        *("PLAINTEXT://pub:1", "PLAINTEXT://pub:1,CONTROLLER://pub:2", "PLAINTEXT://0.0.0.0:1"),
        *("PLAINTEXT://pub:1,CONTROLLER://0.0.0.0:2", "CONTROLLER://pub:1"),
        *("PLAINTEXT://a:1,SSL://b:2", "PLAINTEXT://a:1,SSL://a:1"),
    ),
    "early.start.listeners": ("PLAINTEXT", "NOBODY"),
    "log.dirs": ("/data/a,/data/b", "", "/a,,/b"),
    "cordoned.log.dirs": ("*", "*,/x", "/x"),
    "log.roll.ms": ("0",),
    "log.roll.jitter.ms": ("-1",),
    "log.retention.ms": ("0", "-5"),
    "log.retention.minutes": ("0",),
    "log.cleaner.dedupe.buffer.size": ("1000",),
    "replica.fetch.wait.max.ms": ("40000",),
    "broker.heartbeat.interval.ms": ("9000",),
    "queued.max.request.bytes": ("100",),
    "max.connections.per.ip": ("0",),
    "max.connections.per.ip.overrides": ("a b:1", "127.0.0.1:x"),
    "connections.max.idle.ms": ("50", "-1"),
    "group.coordinator.rebalance.protocols": ("consumer",),
    "group.consumer.assignors": (
        *("range", "uniform, uniform", "sticky", "Range", "", "range,", "range,sticky"),
        *(UNIFORM_CLASS, f"range,{UNIFORM_CLASS}", f"uniform,{UNIFORM_CLASS}"),
    ),
    "group.consumer.migration.policy": ("Upgrade", "none"),
    "group.consumer.max.size": ("0",),
    "group.consumer.session.timeout.ms": ("44999", "60001"),
    "group.consumer.min.session.timeout.ms": ("45001", "60001"),
    "group.consumer.max.session.timeout.ms": ("44999",),
    "group.consumer.heartbeat.interval.ms": ("4999", "15001"),
    "group.consumer.min.heartbeat.interval.ms": ("5001", "15001"),
    "group.consumer.max.heartbeat.interval.ms": ("4999",),
    "group.consumer.assignment.interval.ms": ("15001",),
    "group.consumer.min.assignment.interval.ms": ("1001", "15001"),
    "group.consumer.max.assignment.interval.ms": ("999",),
    "group.consumer.regex.refresh.interval.ms": ("9999",),
    "group.share.session.timeout.ms": ("1",),
    "group.share.assignors": (
        *("simple, simple", "uniform", "Simple", "", SIMPLE_CLASS, f"simple,{SIMPLE_CLASS}"),
        *(UNIFORM_CLASS, f"simple,{UNIFORM_CLASS}"),
    ),
    "group.share.max.delivery.count.limit": ("6",),
    "group.share.delivery.count.limit": ("11",),
    "group.share.min.delivery.count.limit": ("6",),
    "group.share.partition.max.record.locks": ("4001",),
    "group.share.record.lock.duration.ms": ("14999", "60001"),
    "group.share.max.size": ("1000",),
    "group.share.max.share.sessions": ("199",),
    "group.streams.heartbeat.interval.ms": ("1",),
    "group.streams.num.standby.replicas": ("3",),
    "group.streams.task.offset.interval.ms": ("14999",),
    "group.streams.num.warmup.replicas": ("21",),
    "controller.quorum.election.timeout.ms": ("-1",),
    "metadata.log.segment.bytes": ("4",),
    "socket.request.max.bytes": ("many",),
    "num.partitions": ("0",),
    "auto.create.topics.enable": ("yes",),
    "controller.quorum.auto.join.enable": ("true",),
}
# Changes to one of the three.
CASES: tuple[tuple[Mapping[str, str], Mapping[str, str | None]], ...] = (
    *((base, {}) for base in (BOTH, BROKER, CONTROLLER)),
    *((BOTH, {key: value}) for key, values in VALUES.items() for value in values),
    (
        BOTH,
        {
            "group.consumer.session.timeout.ms": "15000",
            "group.consumer.min.session.timeout.ms": "1",
            "group.consumer.heartbeat.interval.ms": "15000",
        },
    ),
    (BOTH, {"node.id": None, "broker.id": "4"}),
    (BOTH, {"controller.quorum.voters": "1@h:9", "listeners": "CONTROLLER://:9,PLAINTEXT://:8"}),
    (BOTH, {"controller.quorum.voters": "1@0.0.0.0:9", "listeners": "PLAINTEXT://:8,CONTROLLER://:9"}),
    (BOTH, {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "SSL"}),
    (BOTH, {"log.dirs": "/data/a,/data/b", "metadata.log.dir": "/data/b"}),
    (BOTH, {"log.dir": "/data/c", "metadata.log.dir": "/data/d"}),
    (BOTH, {"replica.fetch.wait.max.ms": "30000", "replica.lag.time.max.ms": "20000"}),
    (BOTH, {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "a:1"}),
    (BOTH, INSIDE),
    (BOTH, {**INSIDE, "sasl.enabled.mechanisms": "PLAIN"}),
    (BOTH, {**INSIDE, OF_INSIDE: "PLAIN"}),
    (BOTH, {**INSIDE, "sasl.enabled.mechanisms": "PLAIN", OF_INSIDE: "SCRAM-SHA-256"}),
    (BROKER, {**INSIDE, "listeners": "INSIDE://localhost:9092"}),
    (CONTROLLER, {"listener.security.protocol.map": "CONTROLLER:SASL_SSL"}),
    (CONTROLLER, {"security.inter.broker.protocol": "SASL_SSL"}),
    (BROKER, {"listeners": None}),
    (BROKER, {"controller.quorum.auto.join.enable": "true"}),
    (BROKER, {"controller.quorum.voters": VOTERS}),
    (BROKER, {"controller.quorum.voters": "2@b:9093", "controller.quorum.bootstrap.servers": None}),
    (BROKER, {"controller.quorum.bootstrap.servers": None}),
    (BROKER, {"listeners": "PLAINTEXT://h:1,CONTROLLER://h:2"}),
    (BROKER, {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}),
    (BROKER, {"controller.listener.names": "SSL"}),
    (BROKER, {"controller.listener.names": "CONTROLLER,OTHER", "num.partitions": "3"}),
    (CONTROLLER, {"listeners": None}),
    (CONTROLLER, {"listeners": "PLAINTEXT://h:1,CONTROLLER://h:2"}),
    (CONTROLLER, {"controller.quorum.voters": VOTERS}),
    (CONTROLLER, {"controller.quorum.voters": "3@b:9093"}),
    (CONTROLLER, {"inter.broker.listener.name": "CONTROLLER"}),
    (CONTROLLER, {"inter.broker.listener.name": "PLAINTEXT"}),
    (CONTROLLER, {"advertised.listeners": "PLAINTEXT://h:1"}),
    (CONTROLLER, {"advertised.listeners": "CONTROLLER://h:1"}),
    (CONTROLLER, {"controller.listener.names": "A,B", "listeners": "B://h:1,A://h:2"}),
)  # fmt: skip


@pytest.fixture(scope="module")
def judge(java: Java) -> Iterator[ConfigJudge]:
    with ConfigJudge(java) as running:
        yield running


def changed(base: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in {**base, **changes}.items() if text is not None}


def shown(listeners: tuple[Listener, ...]) -> str:
    return " ".join(
        f"{each.name}/{each.protocol.value}/{each.host or 'null'}/{each.port}" for each in listeners
    )


def our_verdict(properties: Mapping[str, str]) -> str:
    try:
        config = NodeConfig.from_properties(properties, must_be_servable=False)
    except ConfigError as error:
        return f"!{error}"
    return "=" + "\n".join(
        (
            f"node {config.node_id}",
            f"directory {config.metadata_log.directory}",
            f"directories {','.join(config.log_directories)}",
            f"inter-broker {config.listeners.inter_broker_name}",
            f"bound {shown(config.listeners.bound)}",
            f"controllers {shown(config.listeners.advertised_controllers)}",
            f"brokers {shown(config.listeners.advertised_brokers)}",
        )
    )


def without_javas_words(verdict: str) -> str:
    """Leave out what Java itself says of a bad index: each release of it has its own words."""
    return re.sub(
        r"(begin 0, end -1, length|Range \[0, -1\) out of bounds for length) \d+", "", verdict
    )


@pytest.mark.parametrize(("base", "changes"), CASES, ids=[str(changes) for _, changes in CASES])
def test_a_properties_file_is_read_and_refused_as_kafka_does(
    judge: ConfigJudge, base: Mapping[str, str], changes: Mapping[str, str | None]
) -> None:
    properties = changed(base, changes)
    assert without_javas_words(our_verdict(properties)) == without_javas_words(
        judge.ask("node", properties)
    )


def test_random_mixtures_of_changes_are_accepted_alike(judge: ConfigJudge) -> None:
    """Of several faults at once Kafka may name another first; what is accepted must be equal."""
    source = random.Random(47)
    different: list[tuple[dict[str, str], str, str]] = []
    for _ in range(1500):
        properties = dict(source.choice((BOTH, BROKER, CONTROLLER)))
        for _, changes in source.sample(CASES, 3):
            properties = changed(properties, changes)
        ours, theirs = our_verdict(properties), judge.ask("node", properties)
        if ours != theirs and "=" in {ours[0], theirs[0]}:
            different.append((properties, ours, theirs))
    assert different == []

"""The steps that Kafka's tools are asked to take on a cluster of one broker."""

from dataclasses import dataclass

BROKER = ("--bootstrap-server", "{broker}")
CONTROLLER = ("--bootstrap-controller", "{controller}")
TOPIC = ("--topic", "tools-made")
TOPIC_ENTITY = ("--entity-type", "topics", "--entity-name", "tools-made")
ALL_BROKERS = ("--entity-type", "brokers", "--entity-default")
USER_ENTITY = ("--entity-type", "users", "--entity-name", "tools-user")
CLIENT_ENTITY = ("--entity-type", "clients", "--entity-name", "tools-client")
METRICS_ENTITY = ("--entity-type", "client-metrics", "--entity-name", "tools-metrics")
GROUP_ENTITY = ("--entity-type", "groups", "--entity-name", "tools-group")
PREFERRED = ("--election-type", "preferred")
PARTITION = ("--partition", "0")
BROKER_ENTITY = ("--entity-type", "brokers", "--entity-name", "1")


CHANGES = frozenset({"--create", "--alter", "--delete", "--add", "unregister", "upgrade"})


@dataclass(frozen=True, slots=True)
class Step:
    """A tool with its arguments; the steps run in their order, since each builds on the last."""

    tool: str
    arguments: tuple[str, ...]

    @property
    def is_change(self) -> bool:
        """Whether it must not be done twice."""
        return not CHANGES.isdisjoint(self.arguments)


def topics(*arguments: str) -> Step:
    return Step("kafka-topics", (*BROKER, *arguments))


def configs(*arguments: str) -> Step:
    return Step("kafka-configs", (*BROKER, *arguments))


STEPS: dict[str, Step] = {
    "create": topics("--create", *TOPIC, "--partitions", "2", "--config", "retention.ms=3600000"),
    "create again": topics("--create", *TOPIC),
    "create if not there": topics("--create", *TOPIC, "--if-not-exists"),
    "create with too many replicas": topics(
        "--create", "--topic", "tools-wide", "--replication-factor", "3"
    ),
    "create with a bad value": topics(
        "--create", "--topic", "tools-bad", "--config", "retention.ms=soon"
    ),
    "create by assignment": topics(
        "--create", "--topic", "tools-assigned", "--replica-assignment", "1,1"
    ),
    "describe": topics("--describe", *TOPIC),
    "describe an unknown topic": topics("--describe", "--topic", "tools-unknown"),
    "describe topics with overrides": topics(
        "--describe", "--topics-with-overrides", "--topic", "tools-.*"
    ),
    "describe unavailable partitions": topics(
        "--describe", "--unavailable-partitions", "--topic", "tools-.*"
    ),
    "list": topics("--list", "--topic", "tools-.*"),
    "alter partitions": topics("--alter", *TOPIC, "--partitions", "4"),
    "alter to fewer partitions": topics("--alter", *TOPIC, "--partitions", "1"),
    "describe after alter": topics("--describe", *TOPIC),
    "set a topic's key": configs(
        "--alter", *TOPIC_ENTITY, "--add-config", "cleanup.policy=[compact,delete]"
    ),
    "set a bad value": configs("--alter", *TOPIC_ENTITY, "--add-config", "segment.bytes=1"),
    "set an unknown key": configs("--alter", *TOPIC_ENTITY, "--add-config", "no.such=1"),
    "describe a topic's keys": configs("--describe", *TOPIC_ENTITY),
    "describe all of a topic's keys": configs("--describe", "--all", *TOPIC_ENTITY),
    "delete a topic's key": configs("--alter", *TOPIC_ENTITY, "--delete-config", "retention.ms"),
    "describe keys after that": configs("--describe", *TOPIC_ENTITY),
    "describe a broker's keys": configs("--describe", *BROKER_ENTITY),
    "set a broker's key": configs(
        "--alter", *BROKER_ENTITY, "--add-config", "message.max.bytes=2097152"
    ),
    "describe a broker's key": configs("--describe", *BROKER_ENTITY),
    "describe the brokers' default": configs(
        "--describe", "--entity-type", "brokers", "--entity-default"
    ),
    "delete a broker's key": configs(
        "--alter", *BROKER_ENTITY, "--delete-config", "message.max.bytes"
    ),
    "describe an unknown topic's keys": configs(
        "--describe", "--entity-type", "topics", "--entity-name", "tools-unknown"
    ),
    "features": Step("kafka-features", (*BROKER, "describe")),
    "features by controller": Step("kafka-features", (*CONTROLLER, "describe")),
    "cluster id": Step("kafka-cluster", ("cluster-id", *BROKER)),
    "cluster id by controller": Step("kafka-cluster", ("cluster-id", *CONTROLLER)),
    "endpoints": Step("kafka-cluster", ("list-endpoints", *BROKER)),
    "endpoints by controller": Step("kafka-cluster", ("list-endpoints", *CONTROLLER)),
    "unregister a controller that is not registered": Step(
        "kafka-cluster", ("unregister-controller", *BROKER, "--id", "99")
    ),
    "unregister the active controller": Step(
        "kafka-cluster", ("unregister-controller", *CONTROLLER, "--id", "1")
    ),
    "quorum status": Step("kafka-metadata-quorum", (*BROKER, "describe", "--status")),
    "quorum status by controller": Step(
        "kafka-metadata-quorum", (*CONTROLLER, "describe", "--status")
    ),
    "quorum replication": Step("kafka-metadata-quorum", (*BROKER, "describe", "--replication")),
    "quorum replication by controller": Step(
        "kafka-metadata-quorum", (*CONTROLLER, "describe", "--replication", "--human-readable")
    ),
    "reassignments": Step("kafka-reassign-partitions", (*BROKER, "--list")),
    "create a topic with a name like another": topics("--create", "--topic", "tools_made"),
    "create a topic without partitions": topics(
        "--create", "--topic", "tools-none", "--partitions", "0"
    ),
    "create the quorum's own topic": topics("--create", "--topic", "__cluster_metadata"),
    "delete the quorum's own topic": topics("--delete", "--topic", "__cluster_metadata"),
    "alter to an unknown broker": topics(
        "--alter", *TOPIC, "--partitions", "5", "--replica-assignment", "1,1,1,1,9"
    ),
    "describe under-replicated partitions": topics("--describe", "--under-replicated-partitions"),
    "set a topic's key by controller": Step(
        "kafka-configs",
        (*CONTROLLER, "--alter", *TOPIC_ENTITY, "--add-config", "max.message.bytes=2048"),
    ),
    "describe a broker's keys by controller": Step(
        "kafka-configs", (*CONTROLLER, "--describe", *BROKER_ENTITY)
    ),
    "set a broker's key to a bad value": configs(
        "--alter", *BROKER_ENTITY, "--add-config", "message.max.bytes=x"
    ),
    "set a broker's unknown key": configs(
        "--alter", *BROKER_ENTITY, "--add-config", "no.such.key=x"
    ),
    "set a broker's fixed key": configs("--alter", *BROKER_ENTITY, "--add-config", "log.dirs=/x"),
    "describe an unknown broker's keys": configs(
        "--describe", "--entity-type", "brokers", "--entity-name", "9"
    ),
    "set a key of all brokers": configs(
        "--alter", *ALL_BROKERS, "--add-config", "log.retention.ms=100000"
    ),
    "describe a key of all brokers": configs("--describe", *ALL_BROKERS),
    "describe a topic below that": configs("--describe", "--all", *TOPIC_ENTITY),
    "describe all of a broker's keys": configs("--describe", "--all", *BROKER_ENTITY),
    "delete a key of all brokers": configs(
        "--alter", *ALL_BROKERS, "--delete-config", "log.retention.ms"
    ),
    "set a user's credential": configs(
        "--alter", *USER_ENTITY, "--add-config", "SCRAM-SHA-256=[password=secret]"
    ),
    "describe users": configs("--describe", "--entity-type", "users"),
    "set a client's quota": configs(
        "--alter", *CLIENT_ENTITY, "--add-config", "producer_byte_rate=1024"
    ),
    "set a client's unknown quota": configs(
        "--alter", *CLIENT_ENTITY, "--add-config", "no_such_rate=1024"
    ),
    "describe a client's quota": configs("--describe", *CLIENT_ENTITY),
    "set a metrics subscription": configs(
        "--alter", *METRICS_ENTITY, "--add-config", "interval.ms=1000"
    ),
    "describe metrics subscriptions": configs("--describe", "--entity-type", "client-metrics"),
    "set a group's key": configs(
        "--alter", *GROUP_ENTITY, "--add-config", "consumer.session.timeout.ms=50000"
    ),
    "describe a group's keys": configs("--describe", *GROUP_ENTITY),
    "upgrade an unknown feature": Step("kafka-features", (*BROKER, "upgrade", "--feature", "x=1")),
    "upgrade to the level that is": Step(
        "kafka-features", (*BROKER, "upgrade", "--feature", "share.version=1")
    ),
    "levels of a release": Step(
        "kafka-features", (*BROKER, "version-mapping", "--release-version", "4.0-IV3")
    ),
    "what a feature needs": Step(
        "kafka-features", (*BROKER, "feature-dependencies", "--feature", "transaction.version=2")
    ),
    "unregister an unknown broker": Step("kafka-cluster", ("unregister", *BROKER, "--id", "7")),
    "endpoints with fenced brokers": Step(
        "kafka-cluster", ("list-endpoints", *BROKER, "--include-fenced-brokers")
    ),
    "elect leaders": Step("kafka-leader-election", (*BROKER, *PREFERRED, *TOPIC, *PARTITION)),
    "elect leaders of an unknown topic": Step(
        "kafka-leader-election", (*BROKER, *PREFERRED, "--topic", "tools-unknown", *PARTITION)
    ),
    "elect all leaders": Step(
        "kafka-leader-election", (*BROKER, "--election-type", "unclean", "--all-topic-partitions")
    ),
    "list access rules": Step("kafka-acls", (*BROKER, "--list")),
    "add an access rule": Step(
        "kafka-acls",
        (*BROKER, "--add", "--allow-principal", "User:x", "--operation", "Read", *TOPIC),
    ),
    "list transactions": Step("kafka-transactions", (*BROKER, "list")),
    "delete": topics("--delete", *TOPIC),
    "delete again": topics("--delete", *TOPIC),
}

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
    "create a topic with a name like another": Step(
        "kafka-topics", (*BROKER, "--create", "--topic", "tools_made")
    ),
    "create a topic without partitions": Step(
        "kafka-topics", (*BROKER, "--create", "--topic", "tools-none", "--partitions", "0")
    ),
    "create the quorum's own topic": Step(
        "kafka-topics", (*BROKER, "--create", "--topic", "__cluster_metadata")
    ),
    "delete the quorum's own topic": Step(
        "kafka-topics", (*BROKER, "--delete", "--topic", "__cluster_metadata")
    ),
    "alter to an unknown broker": Step(
        "kafka-topics",
        (*BROKER, "--alter", *TOPIC, "--partitions", "5", "--replica-assignment", "1,1,1,1,9"),
    ),
    "describe under-replicated partitions": Step(
        "kafka-topics", (*BROKER, "--describe", "--under-replicated-partitions")
    ),
    "set a topic's key by controller": Step(
        "kafka-configs",
        (*CONTROLLER, "--alter", *TOPIC_ENTITY, "--add-config", "max.message.bytes=2048"),
    ),
    "describe a broker's keys by controller": Step(
        "kafka-configs", (*CONTROLLER, "--describe", *BROKER_ENTITY)
    ),
    "set a broker's key to a bad value": Step(
        "kafka-configs", (*BROKER, "--alter", *BROKER_ENTITY, "--add-config", "message.max.bytes=x")
    ),
    "set a broker's unknown key": Step(
        "kafka-configs", (*BROKER, "--alter", *BROKER_ENTITY, "--add-config", "no.such.key=x")
    ),
    "set a broker's fixed key": Step(
        "kafka-configs", (*BROKER, "--alter", *BROKER_ENTITY, "--add-config", "log.dirs=/x")
    ),
    "describe an unknown broker's keys": Step(
        "kafka-configs", (*BROKER, "--describe", "--entity-type", "brokers", "--entity-name", "9")
    ),
    "set a key of all brokers": Step(
        "kafka-configs",
        (*BROKER, "--alter", *ALL_BROKERS, "--add-config", "log.retention.ms=100000"),
    ),
    "describe a key of all brokers": Step("kafka-configs", (*BROKER, "--describe", *ALL_BROKERS)),
    "describe a topic below that": Step(
        "kafka-configs", (*BROKER, "--describe", "--all", *TOPIC_ENTITY)
    ),
    "describe all of a broker's keys": Step(
        "kafka-configs", (*BROKER, "--describe", "--all", *BROKER_ENTITY)
    ),
    "delete a key of all brokers": Step(
        "kafka-configs", (*BROKER, "--alter", *ALL_BROKERS, "--delete-config", "log.retention.ms")
    ),
    "set a user's credential": Step(
        "kafka-configs",
        (*BROKER, "--alter", *USER_ENTITY, "--add-config", "SCRAM-SHA-256=[password=secret]"),
    ),
    "describe users": Step("kafka-configs", (*BROKER, "--describe", "--entity-type", "users")),
    "set a client's quota": Step(
        "kafka-configs",
        (*BROKER, "--alter", *CLIENT_ENTITY, "--add-config", "producer_byte_rate=1024"),
    ),
    "set a client's unknown quota": Step(
        "kafka-configs", (*BROKER, "--alter", *CLIENT_ENTITY, "--add-config", "no_such_rate=1024")
    ),
    "describe a client's quota": Step("kafka-configs", (*BROKER, "--describe", *CLIENT_ENTITY)),
    "set a metrics subscription": Step(
        "kafka-configs",
        (*BROKER, "--alter", *METRICS_ENTITY, "--add-config", "interval.ms=1000"),
    ),
    "describe metrics subscriptions": Step(
        "kafka-configs", (*BROKER, "--describe", "--entity-type", "client-metrics")
    ),
    "set a group's key": Step(
        "kafka-configs",
        (*BROKER, "--alter", *GROUP_ENTITY, "--add-config", "consumer.session.timeout.ms=50000"),
    ),
    "describe a group's keys": Step("kafka-configs", (*BROKER, "--describe", *GROUP_ENTITY)),
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
        "kafka-leader-election",
        (*BROKER, "--election-type", "unclean", "--all-topic-partitions"),
    ),
    "list access rules": Step("kafka-acls", (*BROKER, "--list")),
    "add an access rule": Step(
        "kafka-acls",
        (*BROKER, "--add", "--allow-principal", "User:x", "--operation", "Read", *TOPIC),
    ),
    "list transactions": Step("kafka-transactions", (*BROKER, "list")),
    "delete": Step("kafka-topics", (*BROKER, "--delete", *TOPIC)),
    "delete again": Step("kafka-topics", (*BROKER, "--delete", *TOPIC)),
}

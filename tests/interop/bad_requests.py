"""Requests that a Kafka cluster of one broker refuses, with the error code that it answers.

Every admin client makes each of them, to a real node and to ours. A client's topics begin with
its own prefix, which stands for "*" here; "*-there" exists and has two partitions.
"""

from dataclasses import dataclass, replace
from typing import Protocol

from tests.support.clients.driver import AdminDriver, Outcome, TopicWish

from kvorum.wire.error_codes import ErrorCode

EXISTING = "*-there"
EXISTING_PARTITIONS = 2
LONGEST_NAME = 249


class Request(Protocol):
    """Something to ask a server for."""

    def send(self, driver: AdminDriver, prefix: str) -> Outcome:
        """Send it, with the client's prefix put into its names."""
        ...


@dataclass(frozen=True, slots=True)
class Create:
    """Create a topic."""

    wish: TopicWish
    validate_only: bool = False

    def send(self, driver: AdminDriver, prefix: str) -> Outcome:
        wish = replace(self.wish, name=self.wish.name.replace("*", prefix))
        return driver.create_topics([wish], validate_only=self.validate_only)[wish.name]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a topic."""

    name: str

    def send(self, driver: AdminDriver, prefix: str) -> Outcome:
        return driver.delete_topic(self.name.replace("*", prefix))


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Raise a topic's number of partitions."""

    name: str
    total: int
    assignments: tuple[tuple[int, ...], ...] = ()

    def send(self, driver: AdminDriver, prefix: str) -> Outcome:
        name = self.name.replace("*", prefix)
        return driver.create_partitions(name, self.total, self.assignments)


@dataclass(frozen=True, slots=True)
class Configure:
    """Set a key of a topic's configuration."""

    name: str
    key: str
    value: str

    def send(self, driver: AdminDriver, prefix: str) -> Outcome:
        return driver.set_topic_config(self.name.replace("*", prefix), {self.key: self.value})


def _topic(
    name: str = "*-new",
    partitions: int = 1,
    replication_factor: int = 1,
    **configs: str,
) -> TopicWish:
    keys = {key.replace("_", "."): value for key, value in configs.items()}
    return TopicWish(name, partitions, replication_factor, configs=keys)


def _assigned(*assignments: tuple[int, ...]) -> TopicWish:
    return TopicWish("*-new", assignments=assignments)


BAD_REQUESTS: dict[str, tuple[ErrorCode, Request]] = {
    "a topic that exists": (ErrorCode.TOPIC_ALREADY_EXISTS, Create(_topic(EXISTING))),
    "a topic that exists, to validate": (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        Create(_topic(EXISTING), validate_only=True),
    ),
    "a name with a space": (ErrorCode.INVALID_TOPIC_EXCEPTION, Create(_topic("* new"))),
    "a name that is a dot": (ErrorCode.INVALID_TOPIC_EXCEPTION, Create(_topic("."))),
    "a name that is two dots": (ErrorCode.INVALID_TOPIC_EXCEPTION, Create(_topic(".."))),
    "a name that is too long": (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        Create(_topic("n" * (LONGEST_NAME + 1))),
    ),
    "a name beyond ASCII": (ErrorCode.INVALID_TOPIC_EXCEPTION, Create(_topic("*-größe"))),
    "a name that collides in metrics": (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        Create(_topic("*.dotted_name")),
    ),
    "no partitions": (ErrorCode.INVALID_PARTITIONS, Create(_topic(partitions=0))),
    "more replicas than brokers": (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        Create(_topic(replication_factor=5)),
    ),
    "no replicas": (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        Create(_topic(replication_factor=0)),
    ),
    "too many partitions at once": (
        ErrorCode.POLICY_VIOLATION,
        Create(_topic(partitions=10_001)),
    ),
    "an unknown key": (ErrorCode.INVALID_CONFIG, Create(_topic(no_such_key="1"))),
    "a value of the wrong type": (ErrorCode.INVALID_CONFIG, Create(_topic(retention_ms="soon"))),
    "a value out of range": (ErrorCode.INVALID_CONFIG, Create(_topic(segment_bytes="1"))),
    "a value that is none of the choices": (
        ErrorCode.INVALID_CONFIG,
        Create(_topic(cleanup_policy="shred")),
    ),
    "an assignment to an unknown broker": (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        Create(_assigned((1,), (9,))),
    ),
    "an assignment that repeats a broker": (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        Create(_assigned((1, 1))),
    ),
    "assignments of unequal length": (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        Create(_assigned((1,), (1, 9))),
    ),
    "deleting an unknown topic": (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Delete("*-gone")),
    "partitions for an unknown topic": (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        AddPartitions("*-gone", 3),
    ),
    "fewer partitions": (ErrorCode.INVALID_PARTITIONS, AddPartitions(EXISTING, 1)),
    "as many partitions": (
        ErrorCode.INVALID_PARTITIONS,
        AddPartitions(EXISTING, EXISTING_PARTITIONS),
    ),
    "more partitions on an unknown broker": (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        AddPartitions(EXISTING, 3, ((9,),)),
    ),
    "more partitions with an assignment too many": (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        AddPartitions(EXISTING, 3, ((1,), (1,))),
    ),
    "setting an unknown key": (
        ErrorCode.INVALID_CONFIG,
        Configure(EXISTING, "no.such.key", "1"),
    ),
    "setting a value of the wrong type": (
        ErrorCode.INVALID_CONFIG,
        Configure(EXISTING, "retention.ms", "soon"),
    ),
    "configuring an unknown topic": (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        Configure("*-gone", "retention.ms", "1000"),
    ),
}

"""Confluent's client: the admin driver over it, and what it says of access."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Any, Final, Self, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from tests.support.clients.driver import (
    CLIENT_TIMEOUT_S,
    ClusterView,
    Outcome,
    PartitionView,
    TopicWish,
)
from tests.support.waiting import PATIENCE_S, wait_for

FETCH_WAIT_MS: Final = 10
"""The time that a fetch at the end of a partition waits for more, which does not come."""


class ConfluentDriver:
    """Speaks through librdkafka; every answer comes as a future per topic or resource."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin: Any = importlib.import_module("confluent_kafka.admin")
        self._errors: Any = importlib.import_module("confluent_kafka").KafkaException
        # A future that fails holds the text; what librdkafka logs beside it is not needed.
        settings = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
        self._client: Any = self._admin.AdminClient(settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # librdkafka ends its threads when the client is forgotten.
        self._client = None

    def _outcome(self, future: Any) -> Outcome:
        try:
            future.result(CLIENT_TIMEOUT_S)
        except self._errors as error:
            return Outcome(error.args[0].code(), error.args[0].str())
        return Outcome(0)

    def create_topics(
        self, wishes: Sequence[TopicWish], *, validate_only: bool = False
    ) -> dict[str, Outcome]:
        new_topics = [
            self._admin.NewTopic(wish.name, wish.partitions, 1, config=dict(wish.configs))
            for wish in wishes
        ]
        futures = self._client.create_topics(new_topics, validate_only=validate_only)
        return {name: self._outcome(future) for name, future in futures.items()}

    def delete_topic(self, name: str) -> Outcome:
        return self._outcome(self._client.delete_topics([name])[name])

    def create_partitions(self, name: str, total: int) -> Outcome:
        wish = self._admin.NewPartitions(name, total)
        return self._outcome(self._client.create_partitions([wish])[name])

    def set_topic_config(self, name: str, configs: Mapping[str, str]) -> Outcome:
        entries = [
            self._admin.ConfigEntry(
                key, value, incremental_operation=self._admin.AlterConfigOpType.SET
            )
            for key, value in configs.items()
        ]
        resource = self._admin.ConfigResource(
            self._admin.ResourceType.TOPIC, name, incremental_configs=entries
        )
        (future,) = self._client.incremental_alter_configs([resource]).values()
        return self._outcome(future)

    def topic_config(self, name: str) -> dict[str, str | None]:
        resource = self._admin.ConfigResource(self._admin.ResourceType.TOPIC, name)
        (future,) = self._client.describe_configs([resource]).values()
        return {key: entry.value for key, entry in future.result(CLIENT_TIMEOUT_S).items()}

    def topics(self) -> set[str]:
        return set(self._client.list_topics(timeout=CLIENT_TIMEOUT_S).topics)

    def describe_topic(self, name: str) -> dict[int, PartitionView]:
        metadata = self._client.list_topics(name, timeout=CLIENT_TIMEOUT_S)
        return {
            index: PartitionView(partition.leader, tuple(partition.replicas), tuple(partition.isrs))
            for index, partition in metadata.topics[name].partitions.items()
        }

    def describe_cluster(self) -> ClusterView:
        cluster = self._client.describe_cluster().result(CLIENT_TIMEOUT_S)
        brokers = {node.id: f"{node.host}:{node.port}" for node in cluster.nodes}
        return ClusterView(cluster.cluster_id, brokers)


def make_topics(bootstrap_servers: str, *wishes: TopicWish) -> None:
    """Create topics, none of which may be refused."""
    with ConfluentDriver(bootstrap_servers) as driver:
        outcomes = driver.create_topics(wishes)
    assert {one.code for one in outcomes.values()} == {0}, outcomes


TOPIC: Final = "by-client"
NEW_TOPIC: Final = "by-client-later"
PRINCIPAL: Final = "User:client"


def ask_about_access(bootstrap_servers: str) -> list[str]:
    """Create entries that close topics to this client, try these, and remove the entries.

    The result is what the client heard, request by request.
    """
    admin: Any = importlib.import_module("confluent_kafka.admin")
    client: Any = admin.AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    config = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, TOPIC)
    told = _told(client.create_topics([admin.NewTopic(TOPIC, 1, 1)]))
    closing = _entries(admin)
    told += _told(client.create_acls(closing))
    told += _wait_for_entries(client, _any_filter(admin), len(closing))
    told += _told(client.delete_topics([TOPIC, "by-client-nowhere"]))
    told += _told(client.create_partitions([admin.NewPartitions(TOPIC, 2)]))
    told += _told(client.create_topics([admin.NewTopic(NEW_TOPIC, 1, 1)]))
    told += _told(client.describe_configs([config]))
    told += _told(client.delete_acls([_any_filter(admin)]))
    return told


def _entries(admin: Any) -> list[Any]:
    kinds, patterns = admin.ResourceType, admin.ResourcePatternType
    named: Sequence[tuple[Any, str, Any]] = (
        (kinds.TOPIC, TOPIC, patterns.LITERAL),
        (kinds.TOPIC, NEW_TOPIC, patterns.PREFIXED),
        (kinds.GROUP, "by-client", patterns.LITERAL),
    )
    read, allow = admin.AclOperation.READ, admin.AclPermissionType.ALLOW
    return [
        admin.AclBinding(kind, name, pattern, PRINCIPAL, "*", read, allow)
        for kind, name, pattern in named
    ]


def _any_filter(admin: Any) -> Any:
    return admin.AclBindingFilter(
        admin.ResourceType.ANY,
        None,
        admin.ResourcePatternType.ANY,
        PRINCIPAL,
        None,
        admin.AclOperation.ANY,
        admin.AclPermissionType.ANY,
    )


def _wait_for_entries(client: Any, wanted: Any, count: int) -> list[str]:
    def entries() -> list[str]:
        return sorted(map(str, client.describe_acls(wanted).result(CLIENT_TIMEOUT_S)))

    def look() -> list[str] | None:
        found = entries()
        return found if len(found) == count else None

    return wait_for(look, f"the broker knows of {count} entries", otherwise=entries)


def _told(futures: Mapping[Any, Any]) -> list[str]:
    return [f"{key}: {_outcome(future)}" for key, future in futures.items()]


def _outcome(future: Any) -> str:
    errors: Any = importlib.import_module("confluent_kafka").KafkaException
    try:
        answer = future.result(CLIENT_TIMEOUT_S)
    except errors as error:
        return f"{error.args[0].code()} {error.args[0].str()}"
    # Removing tells of the entries in no certain order.
    entries = cast("list[object]", answer) if isinstance(answer, list) else [answer]
    return "; ".join(sorted(str(entry) for entry in entries))


POLL_TIMEOUT_S = 0.2
Place = tuple[str, int]
"""A topic and the index of a partition."""


def _named(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in settings.items()}


def send(servers: str, topic: str, records: Sequence[Mapping[str, Any]], **settings: Any) -> None:
    """Have each record acknowledged: a flush alone also ends where records were given up.

    Of settings the dots are written as underscores.
    """
    errors: list[object] = []

    def delivered(error: object, _: object) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": servers, **_named(settings)})
    for record in records:
        producer.produce(topic, **record, on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * len(records)


def read_to_end(
    servers: str,
    places: Iterable[Place],
    *,
    isolation: str = "read_uncommitted",
    security: Mapping[str, str] = MappingProxyType({}),
) -> list[Message]:
    """Return what a consumer receives up to the end of each partition."""
    settings = {"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False}
    ending = {
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": FETCH_WAIT_MS,
        "log_level": 0,
    }
    found: list[Message] = []
    awaited = set(places)

    def is_read() -> bool:
        while awaited and (message := consumer.poll(POLL_TIMEOUT_S)) is not None:
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                awaited.discard((message.topic() or "", message.partition() or 0))
        return not awaited

    with closing(Consumer({**settings, **ending, **security})) as consumer:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in awaited])
        wait_for(is_read, "each partition is read to its end", otherwise=lambda: awaited)
    return found


def transactional_producer(servers: str, name: str, **settings: Any) -> Producer:
    """Return the producer of a transactional id, which may begin a transaction."""
    named = {"bootstrap.servers": servers, "transactional.id": name, "log_level": 0}
    producer = Producer({**named, **_named(settings)})
    producer.init_transactions(PATIENCE_S)
    return producer


def end_transaction(producer: Producer, *, is_committed: bool) -> None:
    (producer.commit_transaction if is_committed else producer.abort_transaction)(PATIENCE_S)

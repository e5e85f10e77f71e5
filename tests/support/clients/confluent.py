"""confluent-kafka's AdminClient (librdkafka) as a driver."""

import importlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tests.support.clients.driver import (
    CLIENT_TIMEOUT_S,
    ClusterView,
    Outcome,
    PartitionView,
    TopicWish,
)


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        new_topics = [self._new_topic(wish) for wish in wishes]
        futures = self._client.create_topics(new_topics, validate_only=validate_only)
        return {name: self._outcome(future) for name, future in futures.items()}

    def _new_topic(self, wish: TopicWish) -> Any:
        options: dict[str, Any] = {"config": dict(wish.configs)}
        if wish.assignments:
            options["replica_assignment"] = [list(replicas) for replicas in wish.assignments]
            return self._admin.NewTopic(wish.name, len(wish.assignments), **options)
        replication = wish.replication_factor
        return self._admin.NewTopic(wish.name, wish.partitions, replication, **options)

    def delete_topic(self, name: str) -> Outcome:
        return self._outcome(self._client.delete_topics([name])[name])

    def create_partitions(
        self, name: str, total: int, assignments: Sequence[Sequence[int]] = ()
    ) -> Outcome:
        options: dict[str, Any] = {}
        if assignments:
            options["replica_assignment"] = [list(replicas) for replicas in assignments]
        wish = self._admin.NewPartitions(name, total, **options)
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

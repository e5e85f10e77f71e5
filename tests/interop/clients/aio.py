"""aiokafka's AIOKafkaAdminClient as a driver, with an event loop of its own."""

import asyncio
import importlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Self, TypeVar

from tests.support.clients.driver import (
    CLIENT_TIMEOUT_S,
    ClusterView,
    Outcome,
    PartitionView,
    TopicWish,
)

T = TypeVar("T")


class AioKafkaDriver:
    """Speaks through aiokafka, which uses old versions of most requests."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin: Any = importlib.import_module("aiokafka.admin")
        self._resources: Any = importlib.import_module("aiokafka.admin.config_resource")
        self._errors: Any = importlib.import_module("aiokafka.errors").BrokerResponseError
        self._loop = asyncio.Runner()
        self._client: Any = None
        self._bootstrap_servers = bootstrap_servers

    def __enter__(self) -> Self:
        async def start() -> Any:
            client = self._admin.AIOKafkaAdminClient(bootstrap_servers=self._bootstrap_servers)
            await client.start()
            return client

        self._client = self._run(start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._client.close())
        self._loop.close()

    def _run(self, awaitable: Awaitable[T]) -> T:
        async def within_limit() -> T:
            return await asyncio.wait_for(awaitable, CLIENT_TIMEOUT_S)

        return self._loop.run(within_limit())

    def create_topics(
        self, wishes: Sequence[TopicWish], *, validate_only: bool = False
    ) -> dict[str, Outcome]:
        new_topics = [
            self._admin.NewTopic(wish.name, wish.partitions, 1, None, dict(wish.configs))
            for wish in wishes
        ]
        answer = self._run(self._client.create_topics(new_topics, validate_only=validate_only))
        return {name: Outcome(code, text) for name, code, text in answer.topic_errors}

    def delete_topic(self, name: str) -> Outcome:
        answer = self._run(self._client.delete_topics([name]))
        ((_, code),) = answer.topic_error_codes
        return Outcome(code)

    def create_partitions(self, name: str, total: int) -> Outcome:
        wish = self._admin.NewPartitions(total)
        try:
            self._run(self._client.create_partitions({name: wish}))
        except self._errors as error:
            return Outcome(error.errno, str(error))
        return Outcome(0)

    def set_topic_config(self, name: str, configs: Mapping[str, str]) -> Outcome:
        resource = self._resources.ConfigResource(
            self._resources.ConfigResourceType.TOPIC, name, dict(configs)
        )
        (answer,) = self._run(self._client.alter_configs([resource]))
        ((code, text, _, _),) = answer.resources
        return Outcome(code, text)

    def topic_config(self, name: str) -> dict[str, str | None]:
        resource = self._resources.ConfigResource(self._resources.ConfigResourceType.TOPIC, name)
        (answer,) = self._run(self._client.describe_configs([resource]))
        ((_, _, _, _, entries),) = answer.resources
        return {entry[0]: entry[1] for entry in entries}

    def topics(self) -> set[str]:
        return set(self._run(self._client.list_topics()))

    def describe_topic(self, name: str) -> dict[int, PartitionView]:
        (topic,) = self._run(self._client.describe_topics([name]))
        return {
            partition["partition"]: PartitionView(
                partition["leader"], tuple(partition["replicas"]), tuple(partition["isr"])
            )
            for partition in topic["partitions"]
        }

    def describe_cluster(self) -> ClusterView:
        cluster = self._run(self._client.describe_cluster())
        brokers = {
            broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]
        }
        return ClusterView(cluster["cluster_id"], brokers)

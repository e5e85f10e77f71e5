"""Third-party admin clients see the same from a kvorum node as from a real one.

Where a Java runtime and Kafka's jars are missing, the expectations that were checked against the
real node still hold for ours.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

import pytest
from tests.interop.clients.confluent import ConfluentDriver
from tests.support.clients.driver import (
    CLIENT_TIMEOUT_S,
    AdminDriver,
    ClusterView,
    KafkaPythonDriver,
    Outcome,
    PartitionView,
    TopicWish,
)
from tests.support.node import Node

from kvorum.wire.error_codes import ErrorCode

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
        ((_, code),) = self._run(self._client.delete_topics([name])).topic_error_codes
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


CLIENTS: dict[str, Callable[[str], AbstractContextManager[AdminDriver]]] = {
    "confluent": ConfluentDriver,
    "kafka-python": KafkaPythonDriver,
    "aiokafka": AioKafkaDriver,
}
SETTLED_CONFIGS = {"retention.ms": "3600000", "cleanup.policy": "compact,delete"}


@pytest.fixture(scope="module", params=sorted(CLIENTS))
def client(request: pytest.FixtureRequest) -> str:
    """The name of the client under test, which also begins the names of its topics."""
    return str(request.param)


@pytest.fixture(scope="module")
def ours(client: str, kvorum_node: Node) -> Iterator[AdminDriver]:
    with CLIENTS[client](kvorum_node.address) as driver:
        yield driver


@pytest.fixture(scope="module")
def theirs(client: str, real_kafka: Node) -> Iterator[AdminDriver]:
    with CLIENTS[client](real_kafka.address) as driver:
        yield driver


def test_what_is_refused_reads_as_the_answer_of_a_real_node(
    client: str, ours: AdminDriver, theirs: AdminDriver
) -> None:
    """One refusal of each kind of request; all others are compared request by request."""

    def refusals(driver: AdminDriver) -> list[Outcome]:
        there = f"{client}-there"
        driver.create_topics([TopicWish(there)])
        return [
            driver.create_topics([TopicWish(there)])[there],
            driver.create_partitions(there, 1),
            driver.set_topic_config(there, {"retention.ms": "soon"}),
            driver.delete_topic(f"{client}-gone"),
        ]

    answers = refusals(ours)
    assert [answer.code for answer in answers] == [
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert answers == refusals(theirs)


def test_the_life_of_a_topic(client: str, ours: AdminDriver, kvorum_node: Node) -> None:
    name = f"{client}-lives"
    wish = TopicWish(name, 2, configs=SETTLED_CONFIGS)
    assert ours.create_topics([wish], validate_only=True)[name].code == 0
    assert name not in ours.topics()

    assert ours.create_topics([wish])[name].code == 0
    kvorum_node.process.wait_until(lambda: name in ours.topics(), "the topic is listed")
    only_replica = PartitionView(leader=1, replicas=(1,), isr=(1,))
    assert ours.describe_topic(name) == {0: only_replica, 1: only_replica}
    configs = ours.topic_config(name)
    assert {key: configs[key] for key in SETTLED_CONFIGS} == SETTLED_CONFIGS

    assert ours.create_partitions(name, 3).code == 0
    grown = dict.fromkeys(range(3), only_replica)
    kvorum_node.process.wait_until(
        lambda: ours.describe_topic(name) == grown, "there are three partitions"
    )
    assert ours.set_topic_config(name, {"retention.ms": "7200000"}).code == 0
    kvorum_node.process.wait_until(
        lambda: ours.topic_config(name)["retention.ms"] == "7200000", "the new value is read"
    )
    assert ours.delete_topic(name).code == 0
    kvorum_node.process.wait_until(lambda: name not in ours.topics(), "the topic is gone")


def test_a_topics_configuration_reads_as_on_a_real_node(
    client: str, ours: AdminDriver, theirs: AdminDriver, kvorum_node: Node
) -> None:
    name = f"{client}-configured"
    for driver in (ours, theirs):
        assert driver.create_topics([TopicWish(name, 2, configs=SETTLED_CONFIGS)])[name].code == 0
    kvorum_node.process.wait_until(
        lambda: name in ours.topics() and name in theirs.topics(), "both list it"
    )
    assert ours.topic_config(name) == theirs.topic_config(name)
    assert ours.describe_topic(name) == theirs.describe_topic(name)


def test_the_cluster_is_described(ours: AdminDriver, kvorum_node: Node) -> None:
    cluster = ours.describe_cluster()
    assert cluster.cluster_id == kvorum_node.cluster_id
    assert cluster.brokers == {1: kvorum_node.address}


def test_many_topics_in_one_request(client: str, ours: AdminDriver, kvorum_node: Node) -> None:
    names = [f"{client}-many-{number}" for number in range(50)]
    bad = f"{client} bad"
    made = ours.create_topics([TopicWish(name) for name in [*names, bad]])
    assert {name: outcome.code for name, outcome in made.items()} == {
        **dict.fromkeys(names, 0),
        bad: 17,
    }
    kvorum_node.process.wait_until(lambda: set(names) <= ours.topics(), "all of them are listed")

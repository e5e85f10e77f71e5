"""The questions that tests put to an admin client, whichever it is, and kafka-python's answers.

Two of the three clients ship no type hints, so their modules are imported by name and used as
`Any`; everything that leaves a driver is typed.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from tests.support.waiting import PATIENCE_S

CLIENT_TIMEOUT_S = PATIENCE_S / 3
"""For one answer: a test that waits for a state may ask more than once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer of the server for one topic or resource: Kafka's error code and its text.

    `message` is None where the client, or the version it speaks, does not hand the text on.
    """

    code: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class TopicWish:
    """A topic to create, with one replica of each partition."""

    name: str
    partitions: int = 1
    configs: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition as a client's metadata shows it."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster as a client describes it: its id and its brokers' addresses by id."""

    cluster_id: str
    brokers: Mapping[int, str]


class AdminDriver(Protocol):
    """An admin client, reduced to the requests that all of them have."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def create_topics(
        self, wishes: Sequence[TopicWish], *, validate_only: bool = False
    ) -> dict[str, Outcome]:
        """Create topics; the outcome of each by name."""
        ...

    def delete_topic(self, name: str) -> Outcome: ...

    def create_partitions(self, name: str, total: int) -> Outcome: ...

    def set_topic_config(self, name: str, configs: Mapping[str, str]) -> Outcome:
        """Set a topic's configuration, in the way that the client does it."""
        ...

    def topic_config(self, name: str) -> dict[str, str | None]:
        """Return a topic's whole configuration."""
        ...

    def topics(self) -> set[str]: ...

    def describe_topic(self, name: str) -> dict[int, PartitionView]:
        """Return a topic's partitions; none where the topic is not there."""
        ...

    def describe_cluster(self) -> ClusterView: ...


class KafkaPythonDriver:
    """Speaks through kafka-python 3, with errors as results instead of exceptions."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._admin: Any = importlib.import_module("kafka.admin")
        self._client: Any = self._admin.KafkaAdminClient(
            bootstrap_servers=bootstrap_servers, request_timeout_ms=int(CLIENT_TIMEOUT_S * 1000)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def create_topics(
        self, wishes: Sequence[TopicWish], *, validate_only: bool = False
    ) -> dict[str, Outcome]:
        asked = {
            wish.name: {
                "configs": dict(wish.configs),
                "num_partitions": wish.partitions,
                "replication_factor": 1,
            }
            for wish in wishes
        }
        answer = self._client.create_topics(asked, validate_only=validate_only, raise_errors=False)
        return {
            topic["name"]: Outcome(topic["error_code"], topic["error_message"])
            for topic in answer["topics"]
        }

    def delete_topic(self, name: str) -> Outcome:
        (topic,) = self._client.delete_topics([name], raise_errors=False)["topics"]
        return Outcome(topic["error_code"], topic["error_message"])

    def create_partitions(self, name: str, total: int) -> Outcome:
        wish = self._admin.NewPartitions(total)
        (result,) = self._client.create_partitions({name: wish}, raise_errors=False).results
        return Outcome(result.error_code, result.error_message)

    def set_topic_config(self, name: str, configs: Mapping[str, str]) -> Outcome:
        resource = self._admin.ConfigResource("TOPIC", name, dict(configs))
        answer = self._client.alter_configs([resource], raise_on_unknown=False)
        return _outcome_of_text(str(answer["topic"][name]))

    def topic_config(self, name: str) -> dict[str, str | None]:
        resource = self._admin.ConfigResource("TOPIC", name)
        answer = self._client.describe_configs([resource], config_filter="all")
        return {key: entry["value"] for key, entry in answer["topic"][name].items()}

    def topics(self) -> set[str]:
        return set(self._client.list_topics())

    def describe_topic(self, name: str) -> dict[int, PartitionView]:
        (topic,) = self._client.describe_topics([name])
        return {
            partition["partition_index"]: PartitionView(
                partition["leader_id"],
                tuple(partition["replica_nodes"]),
                tuple(partition["isr_nodes"]),
            )
            for partition in topic["partitions"]
        }

    def reassign(self, topic: str, replicas: Sequence[int] | None) -> str | None:
        """Reassign a topic's partition 0; return the name of the error, None for success."""
        partition = importlib.import_module("kafka").TopicPartition(topic, 0)
        wanted = None if replicas is None else list(replicas)
        error = self._client.alter_partition_reassignments({partition: wanted})[partition]
        return None if error is None else str(error.__name__)

    def reassignment(self, topic: str) -> Mapping[str, list[int]] | None:
        """Return the reassignment of a topic's partition 0, None without one."""
        partition = importlib.import_module("kafka").TopicPartition(topic, 0)
        found: Mapping[Any, Mapping[str, list[int]]] = self._client.list_partition_reassignments()
        return found.get(partition)

    def describe_cluster(self) -> ClusterView:
        cluster = self._client.describe_cluster()
        brokers = {
            broker["broker_id"]: f"{broker['host']}:{broker['port']}"
            for broker in cluster["brokers"]
        }
        return ClusterView(cluster["cluster_id"], brokers)


def _outcome_of_text(text: str) -> Outcome:
    """Read "[Error 40] InvalidConfigurationError: text", the client's way to tell a failure."""
    if not text.startswith("[Error "):
        return Outcome(0)
    code, _, rest = text.removeprefix("[Error ").partition("] ")
    return Outcome(int(code), rest.partition(": ")[2])

"""The questions that tests put to an admin client, whichever it is.

Two of the three clients ship no type hints, so their modules are imported by name and used as
`Any`; everything that leaves a driver is typed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

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

    def create_partitions(self, name: str, total: int) -> Outcome:
        """Raise a topic's number of partitions."""
        ...

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

    def describe_cluster(self) -> ClusterView:
        """Return what the client knows of the cluster."""
        ...

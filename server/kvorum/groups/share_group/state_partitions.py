"""The partitions of a share group whose state a share coordinator keeps, or is to (KIP-932).

A partition is assigned to members once its state is initialized. All of a group's are in one record
(ShareGroupStatePartitionMetadata).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

UNKNOWN_TOPIC: Final = "<UNKNOWN>"
"""The name in records of a topic that is gone."""
Partitions: TypeAlias = Mapping[bytes, Collection[int]]
"""Partitions by the id of their topic."""


@dataclass(frozen=True, slots=True)
class StateTopic:
    """A topic with some of its partitions, and the time at which it came here (InitMapValue)."""

    name: str
    partitions: frozenset[int]
    timestamp_ms: int

    def without(self, partitions: Collection[int]) -> "StateTopic":
        """Return the topic without some partitions."""
        return StateTopic(self.name, self.partitions.difference(partitions), self.timestamp_ms)


StateTopics: TypeAlias = Mapping[bytes, StateTopic]


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The partitions by topic id, and by how far their state is (…StatePartitionMetadataInfo).

    Of topics whose state is deleted only the ids are kept.
    """

    initializing: StateTopics = field(default_factory=dict[bytes, StateTopic])
    initialized: StateTopics = field(default_factory=dict[bytes, StateTopic])
    deleting: frozenset[bytes] = frozenset()


def combined(first: StateTopics, second: StateTopics) -> dict[bytes, StateTopic]:
    """Return topics with the partitions that they have in either; names and times of the second."""
    topics = dict(first)
    for topic_id, topic in second.items():
        before = topics.get(topic_id)
        partitions = topic.partitions if before is None else topic.partitions | before.partitions
        topics[topic_id] = StateTopic(topic.name, partitions, topic.timestamp_ms)
    return topics

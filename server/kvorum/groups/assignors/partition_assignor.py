"""The input and the output of an assignor.

Kafka's PartitionAssignor, GroupSpecImpl and MemberSubscriptionAndAssignmentImpl.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.metadata.java_hash import JavaHashMap

Assignment: TypeAlias = Mapping[bytes, OrderedSet[int]]
"""The partitions by the 16 bytes of their topic's id.

A target of a consumer group has no topic without a partition. That of a share group may have one,
all of whose partitions the member has lost. The order of topics and partitions is the order of the
record that holds the assignment (such as ConsumerGroupTargetAssignmentMember). A later assignment
depends on it.
"""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """A member of a group, with its previous target."""

    topic_ids: OrderedSet[bytes]
    """The ids of subscribed topics that exist, in the order of the Java set of their names."""
    assigned: Assignment
    """The previous target."""
    instance_id: str | None = None
    rack_id: str | None = None
    missing_topic_count: int = 0
    """The number of subscribed names without a topic; Java's table of ids has room for them."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group whose partitions are to be assigned."""

    members: JavaHashMap[MemberSubscription]
    """The members by their ids."""
    is_homogeneous: bool
    """All members subscribe to the same topics."""
    partition_counts: Mapping[bytes, int]
    """The number of partitions of each subscribed topic, by topic id."""
    assignable: Mapping[bytes, Collection[int]] | None = None
    """The partitions that members may get, by topic id; None for all of them."""

    def is_assignable(self, topic_id: bytes, partition: int) -> bool:
        """Return whether a member may get a partition."""
        return self.assignable is None or partition in self.assignable.get(topic_id, ())


class PartitionAssignorError(Exception):
    """An assignor cannot assign the partitions of a group; Kafka's PartitionAssignorException."""


class PartitionAssignor(Protocol):
    """Decides which member of a group is to have which partitions."""

    @property
    def name(self) -> str:
        """The name by which members and the broker's configuration choose the assignor."""
        ...

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """Return the new target of each member by its id; members left out get no partition.

        Raises `PartitionAssignorError` when a subscribed topic has no number of partitions.
        """
        ...

"""The input and the output of an assignor.

Kafka's ConsumerGroupPartitionAssignor, GroupSpecImpl and MemberSubscriptionAndAssignmentImpl.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.metadata.java_hash import JavaHashMap

Assignment: TypeAlias = Mapping[bytes, OrderedSet[int]]
"""The partitions by the 16 bytes of their topic's id; topics without a partition are left out.

The order of topics and partitions is the order of the record (ConsumerGroupTargetAssignmentMember)
that holds the assignment. A later assignment depends on it.
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

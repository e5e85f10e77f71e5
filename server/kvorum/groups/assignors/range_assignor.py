"""The range assignor: of each topic, a member gets partitions that follow one another.

Members take their ranges in one order for all topics, so topics with equally many partitions are
co-partitioned when all members subscribe to them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kvorum.groups.assignors.hash_table import capacity_for
from kvorum.groups.assignors.member_target import topic_table
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import (
    Assignment,
    GroupSpec,
    MemberSubscription,
    PartitionAssignorError,
)

_NAME: Final = "range"


@dataclass(slots=True)
class _Topic:
    """The partitions of a topic from `next_partition` on, for `waiting_count` subscribers."""

    partition_count: int
    waiting_count: int
    next_partition: int = 0

    def next_range(self) -> range:
        """Return the partitions of the next subscriber; earlier ones have at most one more."""
        first = self.next_partition
        left_count = self.partition_count - first
        self.next_partition += -(-left_count // self.waiting_count)
        self.waiting_count -= 1
        return range(first, self.next_partition)


class RangeAssignor:
    """Kafka's RangeAssignor."""

    @property
    def name(self) -> str:
        """The assignor's name."""
        return _NAME

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """Return the new target of each member."""
        entries = zip(group.members.keys(), group.members.values(), strict=True)
        members = sorted(entries, key=_place_of_member)
        if not members:
            return {}
        first = members[0][1]
        topics = _topics(group, first)
        if group.is_homogeneous:
            shared = _in_table_order(first.topic_ids, len(first.topic_ids))
            return {member_id: _next_ranges(topics, shared) for member_id, _ in members}
        targets: dict[str, Assignment] = {}
        for member_id, member in members:
            name_count = len(member.topic_ids) + member.missing_topic_count
            topic_ids = _in_table_order(member.topic_ids, name_count)
            targets[member_id] = _next_ranges(topics, topic_ids)
        return targets


def _in_table_order(topic_ids: Iterable[bytes], count: int) -> list[bytes]:
    """Return topic ids in the order of a table that has room for `count` of them."""
    return topic_table(capacity_for(count), topic_ids).in_order()


def _next_ranges(topics: Mapping[bytes, _Topic], topic_ids: Iterable[bytes]) -> Assignment:
    """Return the target of the next member, which subscribes to these topics."""
    ranges = ((topic_id, topics[topic_id].next_range()) for topic_id in topic_ids)
    return {topic_id: OrderedSet(numbers) for topic_id, numbers in ranges if numbers}


def _place_of_member(entry: tuple[str, MemberSubscription]) -> tuple[bool, bytes]:
    """Return a key by which static members sort before the others, and texts as in Java."""
    member_id, member = entry
    instance_id = member.instance_id
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text.encode("utf-16-be", "surrogatepass")


def _topics(group: GroupSpec, first_member: MemberSubscription) -> dict[bytes, _Topic]:
    """Return the topics; of equal subscriptions, as the group takes them for, the first counts."""
    members = group.members.values()
    if group.is_homogeneous:
        subscriber_counts = Counter(dict.fromkeys(first_member.topic_ids, len(members)))
    else:
        subscriber_counts = Counter(topic_id for member in members for topic_id in member.topic_ids)
    if not subscriber_counts.keys() <= group.partition_counts.keys():
        raise PartitionAssignorError("Member is subscribed to a non-existent topic")
    return {
        topic_id: _Topic(group.partition_counts[topic_id], subscriber_count)
        for topic_id, subscriber_count in subscriber_counts.items()
    }

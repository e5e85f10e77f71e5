"""The simple assignor of share groups: a partition may go to several members (KIP-932)."""

from typing import Final

from kvorum.groups.assignors.member_target import MemberTarget, as_iterated, topic_table
from kvorum.groups.assignors.partition_assignor import Assignment, GroupSpec
from kvorum.groups.assignors.partition_counts import count_partitions
from kvorum.groups.assignors.partition_sharing import PartitionSharing, TopicIdPartition
from kvorum.metadata.java_hash import FIRST_CAPACITY, spread_integer
from kvorum.wire.uuid_hash import uuid_hash

_NAME: Final = "simple"
_RECORD_HASH_FACTOR: Final = 31


class SimpleAssignor:
    """Kafka's SimpleAssignor; racks do not matter to it."""

    @property
    def name(self) -> str:
        """The assignor's name."""
        return _NAME

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """Return the new target of each member."""
        if not group.members:
            return {}
        if group.is_homogeneous:
            return _SharingGroup(group).share_among_all()
        return _SharingGroup(group).share_topic_by_topic()


class _SharingGroup:
    """A group with at least one member; members are known by their index in Java's order."""

    def __init__(self, group: GroupSpec) -> None:
        self._group = group
        self._members = group.members.values()
        self._had = [as_iterated(member.assigned) for member in self._members]
        self._targets: dict[int, MemberTarget] = {}

    def share_among_all(self) -> dict[str, Assignment]:
        """Return the targets of members that subscribe to the same topics."""
        counts = count_partitions(self._group, self._members[0].topic_ids)
        partitions = [one for topic_id in counts for one in self._assignable(topic_id, counts)]
        sharing = PartitionSharing(partitions, range(len(self._members)), _hash_of_record, self)
        for index, assigned in enumerate(self._had):
            for topic_id, numbers in assigned.items():
                if topic_id not in counts:
                    self._target(index).remove_topic(topic_id)
                    continue
                for number in numbers:
                    sharing.keep(index, (topic_id, number))
        sharing.share()
        return self._result()

    def share_topic_by_topic(self) -> dict[str, Assignment]:
        """Return the targets of members that subscribe to different topics.

        As in Kafka, members keep partitions of topics to which no member subscribes any more.
        """
        topics = topic_table(FIRST_CAPACITY)
        for member in self._members:
            for topic_id in member.topic_ids:
                topics.put(topic_id)
        counts = count_partitions(self._group, topics.in_order())
        if not counts:
            return {}
        for topic_id in counts:
            subscribers = [
                index for index, member in enumerate(self._members) if topic_id in member.topic_ids
            ]
            partitions = self._assignable(topic_id, counts)
            sharing = PartitionSharing(partitions, subscribers, _hash_of_number, self)
            for index, assigned in enumerate(self._had):
                for number in assigned.get(topic_id, ()):
                    sharing.keep(index, (topic_id, number))
            sharing.share()
        return self._result()

    def give(self, member: int, partition: TopicIdPartition) -> None:
        """Add a partition to a member's target."""
        self._target(member).add(*partition)

    def take(self, member: int, partition: TopicIdPartition) -> None:
        """Remove a partition from a member's target."""
        self._target(member).empty(*partition)

    def _assignable(self, topic_id: bytes, counts: dict[bytes, int]) -> list[TopicIdPartition]:
        return [
            (topic_id, number)
            for number in range(counts[topic_id])
            if self._group.is_assignable(topic_id, number)
        ]

    def _target(self, index: int) -> MemberTarget:
        """Return a member's target, to be changed."""
        target = self._targets.get(index)
        if target is None:
            target = self._targets[index] = MemberTarget(self._had[index])
        return target

    def _result(self) -> dict[str, Assignment]:
        return {
            member_id: self._targets[index].assignment()
            if index in self._targets
            else self._members[index].assigned
            for index, member_id in enumerate(self._group.members.keys())
        }


def _hash_of_record(partition: TopicIdPartition) -> int:
    """Return the hash of Kafka's TopicIdPartition, a record of Java."""
    topic_id, number = partition
    return spread_integer(_RECORD_HASH_FACTOR * uuid_hash(topic_id) + number)


def _hash_of_number(partition: TopicIdPartition) -> int:
    _, number = partition
    return spread_integer(number)

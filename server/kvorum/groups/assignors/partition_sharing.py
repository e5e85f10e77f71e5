"""The sharing of partitions among members, in which a partition may have several of them (KIP-932).

The part that Kafka's SimpleHomogeneousAssignmentBuilder and SimpleHeterogeneousAssignmentBuilder
have in common. Each partition goes to the same number of members, and the members get about the
same number of partitions. They keep what they have as far as that allows.
"""

from collections.abc import Callable, Sequence
from math import ceil
from typing import Protocol, TypeAlias

from kvorum.groups.assignors.hash_table import HashTable, capacity_for
from kvorum.groups.assignors.partition_assignor import PartitionAssignorError
from kvorum.metadata.java_hash import FIRST_CAPACITY, spread_integer

TopicIdPartition: TypeAlias = tuple[bytes, int]


class ChangedTargets(Protocol):
    """The targets of members, which change while partitions are shared among these."""

    def give(self, member: int, partition: TopicIdPartition) -> None:
        """Add a partition to the target of the member of an index."""
        ...

    def take(self, member: int, partition: TopicIdPartition) -> None:
        """Remove a partition from the target of the member of an index."""
        ...


class PartitionSharing:
    """The members of each partition, and the partitions of each member, by its index."""

    def __init__(
        self,
        partitions: Sequence[TopicIdPartition],
        subscribers: Sequence[int],
        hash_of: Callable[[TopicIdPartition], int],
        targets: ChangedTargets,
    ) -> None:
        """Begin with partitions that no member has.

        `subscribers` are the members among which the partitions are to be shared, in the order of
        their indices. `hash_of` returns the hash from whose low bits Java's tables of partitions
        take a bucket.
        """
        count = len(partitions)
        self._partitions = partitions
        self._subscribers = subscribers
        self._hash_of = hash_of
        self._targets = targets
        self._sharing_count = -(-len(subscribers) // count) if count else 0
        self._shares = _shares(subscribers, self._sharing_count * count)
        self._order: HashTable[TopicIdPartition] = HashTable(hash_of, capacity_for(count + 1))
        self._members: dict[TopicIdPartition, HashTable[int]] = {}
        self._assigned: dict[int, HashTable[TopicIdPartition]] = {}

    def keep(self, member: int, partition: TopicIdPartition) -> None:
        """Begin with a partition that a member has; members come in the order of their indices.

        It may be a partition that is not to be shared, and a member that does not subscribe.
        """
        self._members_of(partition).put(member)
        self._assigned_to(member).put(partition)

    def share(self) -> None:
        """Take from members and from partitions what they have too much of, and hand out the rest.

        Raises `PartitionAssignorError` if members have partitions that cannot be shared, so that
        others find no member. Kafka's assignor fails as well.
        """
        for member, assigned in self._assigned.items():
            excess = len(assigned) - self._shares.get(member, 0)
            for partition in assigned.in_order()[: max(excess, 0)]:
                self._take(member, partition)
        for partition in self._order.in_order():
            members = self._members[partition]
            excess = len(members) - self._sharing_count
            for member in members.in_order()[: max(excess, 0)]:
                self._take(member, partition)
        for partition in self._partitions:
            self._members_of(partition)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give partitions to members in turn, until all have enough or a round gives nothing.

        As in Kafka, a member of several rounds may be given the same partition twice.
        """
        short = [one for one in self._subscribers if self._room(one) > 0]
        position = 0
        has_given = False
        for partition in self._order.in_order():
            members = self._members[partition]
            lacking_count = self._sharing_count - len(members)
            while lacking_count > 0:
                if position == len(short):
                    if not has_given:
                        break
                    if not short:
                        raise PartitionAssignorError("No member has room for a partition")
                    position = 0
                    has_given = False
                member = short[position]
                position += 1
                if member in members:
                    continue
                self._targets.give(member, partition)
                self._assigned_to(member).put(partition)
                lacking_count -= 1
                has_given = True
                if self._room(member) <= 0:
                    position -= 1
                    del short[position]
            if not short:
                return

    def _take(self, member: int, partition: TopicIdPartition) -> None:
        self._targets.take(member, partition)
        self._members[partition].remove(member)
        self._assigned[member].remove(partition)

    def _room(self, member: int) -> int:
        return self._shares[member] - len(self._assigned_to(member))

    def _members_of(self, partition: TopicIdPartition) -> HashTable[int]:
        self._order.compute_if_absent(partition)
        found = self._members.get(partition)
        if found is None:
            found = self._members[partition] = HashTable(spread_integer, FIRST_CAPACITY)
        return found

    def _assigned_to(self, member: int) -> HashTable[TopicIdPartition]:
        found = self._assigned.get(member)
        if found is None:
            found = self._assigned[member] = HashTable(self._hash_of, FIRST_CAPACITY)
        return found


def _shares(subscribers: Sequence[int], total: int) -> dict[int, int]:
    """Return how many partitions each subscriber is to have, `total` together."""
    exact = total / len(subscribers)
    return {
        member: ceil(exact * (place + 1)) - ceil(exact * place)
        for place, member in enumerate(subscribers)
    }

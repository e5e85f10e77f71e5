"""The uniform assignment where members subscribe to different topics.

Kafka's UniformHeterogeneousAssignmentBuilder. Members keep partitions of topics to which they still
subscribe. The others go to the least loaded subscribers, topic by topic. Then partitions of each
topic move from its most loaded subscriber to its least loaded one, as long as that balances them.
"""

from collections.abc import Iterable
from typing import Final

from kvorum.groups.assignors.hash_table import capacity_for
from kvorum.groups.assignors.load_ranges import LoadRanges
from kvorum.groups.assignors.member_target import MemberTarget, as_iterated
from kvorum.groups.assignors.partition_assignor import Assignment, GroupSpec, PartitionAssignorError
from kvorum.groups.assignors.partition_counts import count_partitions
from kvorum.wire.uuid_order import uuid_order
from kvorum.wire.uuid_text import uuid_to_text

_ROUND_COUNT_MAX: Final = 16
"""Members whose topics overlap may take long to balance; each round about halves what is left."""
_NO_MEMBER: Final = -1


class HeterogeneousGroup:
    """A group with at least one member; members are known by their index in Java's order."""

    def __init__(self, group: GroupSpec) -> None:
        self._member_ids = group.members.keys()
        self._members = group.members.values()
        self._loads = [0] * len(self._members)
        self._targets: dict[int, MemberTarget] = {}
        self._subscribers: dict[bytes, list[int]] = {}
        for index, member in enumerate(self._members):
            for topic_id in member.topic_ids:
                self._subscribers.setdefault(topic_id, []).append(index)
        self._counts = count_partitions(group, self._subscribers)
        self._owners = {topic_id: [_NO_MEMBER] * count for topic_id, count in self._counts.items()}

    def assign(self) -> dict[str, Assignment]:
        """Return the new target of each member."""
        if not self._counts:
            return {}
        for index in range(len(self._members)):
            self._keep_subscribed(index)
        topic_ids = sorted(self._counts, key=self._place_of_topic)
        for topic_id in topic_ids:
            self._hand_out(topic_id)
        self._balance([topic_id for topic_id in topic_ids if len(self._subscribers[topic_id]) > 1])
        return {
            member_id: self._targets[index].assignment() if index in self._targets else assigned
            for index, (member_id, assigned) in enumerate(self._previous())
        }

    def _previous(self) -> Iterable[tuple[str, Assignment]]:
        return zip(self._member_ids, (member.assigned for member in self._members), strict=True)

    def _place_of_topic(self, topic_id: bytes) -> tuple[float, int, bytes]:
        """Return a key: the most partitions for a subscriber, the fewest subscribers, the id."""
        subscriber_count = len(self._subscribers[topic_id])
        return -(self._counts[topic_id] / subscriber_count), subscriber_count, uuid_order(topic_id)

    def _keep_subscribed(self, index: int) -> None:
        member = self._members[index]
        for topic_id, partitions in member.assigned.items():
            if topic_id not in member.topic_ids:
                self._target(index).remove_topic(topic_id)
                continue
            self._loads[index] += len(partitions)
            owners = self._owners[topic_id]
            for number in partitions:
                if number >= len(owners):
                    # The metadata is older than that of the target. Kafka's assignor fails as well.
                    raise PartitionAssignorError(
                        f"Topic {uuid_to_text(topic_id)} has no partition {number}, which a member "
                        "has had."
                    )
                owners[number] = index

    def _hand_out(self, topic_id: bytes) -> None:
        """Give the partitions without an owner to the least loaded subscribers."""
        ranges = LoadRanges(self._loads, self._subscribers[topic_id])
        for number, owner in enumerate(self._owners[topic_id]):
            if owner == _NO_MEMBER:
                self._give(topic_id, number, ranges.next_receiver())

    def _balance(self, topic_ids: list[bytes]) -> None:
        """Balance topic by topic, until all others were visited since the last move."""
        last_moved = None
        for _ in range(_ROUND_COUNT_MAX):
            for topic_id in topic_ids:
                if topic_id == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Move partitions of a topic to the least loaded; return whether one was moved."""
        ranges = LoadRanges(self._loads, self._subscribers[topic_id])
        if ranges.imbalance <= 1:
            return False
        movable: dict[int, list[int]] = {index: [] for index in self._subscribers[topic_id]}
        for number, owner in enumerate(self._owners[topic_id]):
            movable[owner].append(number)
        moved = False
        while not ranges.are_balanced:
            giver = ranges.next_giver(movable)
            if giver is None:
                break
            receiver = ranges.next_receiver()
            if ranges.are_balanced:
                break
            self._move(topic_id, movable[giver].pop(), receiver)
            moved = True
        return moved

    def _move(self, topic_id: bytes, number: int, receiver: int) -> None:
        giver = self._owners[topic_id][number]
        self._target(giver).remove(topic_id, number)
        self._loads[giver] -= 1
        self._give(topic_id, number, receiver)

    def _give(self, topic_id: bytes, number: int, receiver: int) -> None:
        fair_share = -(-self._counts[topic_id] // len(self._subscribers[topic_id]))
        self._target(receiver).add(topic_id, number, capacity=capacity_for(fair_share))
        self._owners[topic_id][number] = receiver
        self._loads[receiver] += 1

    def _target(self, index: int) -> MemberTarget:
        """Return a member's target, to be changed."""
        target = self._targets.get(index)
        if target is None:
            target = MemberTarget(as_iterated(self._members[index].assigned))
            self._targets[index] = target
        return target

"""The uniform assignment where all members subscribe to the same topics.

Kafka's UniformHomogeneousAssignmentBuilder. A member keeps what it has up to its quota. Members
below their quota take partitions that had no owner first, then those that others give up. No two
quotas differ by more than one.
"""

from collections.abc import Iterator
from itertools import islice

from kvorum.groups.assignors.hash_table import set_capacity
from kvorum.groups.assignors.member_target import MemberTarget, as_iterated, topic_table
from kvorum.groups.assignors.partition_assignor import (
    Assignment,
    GroupSpec,
    MemberSubscription,
    PartitionAssignorError,
)
from kvorum.groups.assignors.partition_counts import count_partitions


class HomogeneousGroup:
    """A group with at least one member, all of them with the same topics."""

    def __init__(self, group: GroupSpec) -> None:
        self._member_ids = group.members.keys()
        self._members = group.members.values()
        self._counts = count_partitions(group, _topic_ids(self._members[0]))
        self._unassigned = list(self._without_owner())
        self._changed: dict[str, MemberTarget] = {}

    def assign(self) -> dict[str, Assignment]:
        """Return the new target of each member."""
        if not self._counts:
            return {}
        self._fill(self._make_room())
        return {
            member_id: self._changed[member_id].assignment()
            if member_id in self._changed
            else member.assigned
            for member_id, member in zip(self._member_ids, self._members, strict=True)
        }

    def _without_owner(self) -> Iterator[tuple[bytes, int]]:
        owned: dict[bytes, set[int]] = {topic_id: set() for topic_id in self._counts}
        for member in self._members:
            for topic_id in member.assigned.keys() & owned:
                owned[topic_id].update(member.assigned[topic_id])
        for topic_id, count in self._counts.items():
            numbers = (number for number in range(count) if number not in owned[topic_id])
            yield from ((topic_id, number) for number in numbers)

    def _make_room(self) -> list[tuple[str, int]]:
        """Revoke what members may not keep; return how many partitions each is short of.

        As long as there are members enough for the bigger quota, only one that has so many gets it.
        """
        quota_min, bigger_count = divmod(sum(self._counts.values()), len(self._members))
        waiting_count = len(self._members)
        short: list[tuple[str, int]] = []
        for member_id, member in zip(self._member_ids, self._members, strict=True):
            is_bigger = bigger_count > 0
            room = self._revoke(member_id, member, quota_min + is_bigger)
            if room and is_bigger and waiting_count > bigger_count:
                is_bigger = False
                room -= 1
            if room:
                short.append((member_id, room))
            bigger_count -= is_bigger
            waiting_count -= 1
        return short

    def _revoke(self, member_id: str, member: MemberSubscription, quota: int) -> int:
        """Take what a member may not keep; return how many partitions it may have beside."""
        assigned = member.assigned
        had_count = sum(map(len, assigned.values()))
        if had_count <= quota and assigned.keys() <= self._counts.keys():
            return quota - had_count
        iterated = as_iterated(assigned)
        target = self._changed[member_id] = MemberTarget(iterated)
        for topic_id, partitions in iterated.items():
            if topic_id not in self._counts:
                target.remove_topic(topic_id)
                continue
            kept_count = min(len(partitions), quota)
            for number in islice(partitions, kept_count, None):
                target.remove(topic_id, number)
                self._unassigned.append((topic_id, number))
            quota -= kept_count
        return quota

    def _fill(self, short: list[tuple[str, int]]) -> None:
        members = dict(zip(self._member_ids, self._members, strict=True))
        unassigned = iter(self._unassigned)
        for member_id, room in short:
            for topic_id, number in islice(unassigned, room):
                target = self._changed.get(member_id)
                if target is None:
                    target = MemberTarget(as_iterated(members[member_id].assigned))
                    self._changed[member_id] = target
                target.add(topic_id, number)
        if next(unassigned, None) is not None:
            raise PartitionAssignorError("Partitions were left unassigned")


def _topic_ids(member: MemberSubscription) -> list[bytes]:
    """Return the ids in the order of a ``HashSet`` of the topics to which a member subscribes."""
    capacity = set_capacity(len(member.topic_ids) + member.missing_topic_count)
    return topic_table(capacity, member.topic_ids).in_order()

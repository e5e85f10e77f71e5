"""Groups of few members and topics, and their targets in plain words, for tests of assignors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kvorum.groups.assignors.assignors_by_name import ASSIGNORS
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import GroupSpec, MemberSubscription
from kvorum.metadata.java_hash import JavaHashMap


def topic_id(number: int) -> bytes:
    """Return the id of a topic, whose hash is that number."""
    return number.to_bytes(16)


@dataclass(frozen=True)
class Member:
    """A member of a group; letters as ids come in the order of the alphabet."""

    topics: Iterable[int]
    had: Mapping[int, Iterable[int]] = field(default_factory=dict[int, Iterable[int]])
    instance_id: str | None = None
    missing_topic_count: int = 0


def group_of(
    members: Mapping[str, Member],
    partition_counts: Mapping[int, int],
    *,
    taken_for_homogeneous: bool = False,
) -> GroupSpec:
    """Return a group; it is homogeneous if its members have the same topics, or taken for it."""
    found: JavaHashMap[MemberSubscription] = JavaHashMap()
    for member_id, member in members.items():
        had = {topic_id(topic): OrderedSet(numbers) for topic, numbers in member.had.items()}
        subscription = MemberSubscription(
            topic_ids=OrderedSet(map(topic_id, member.topics)),
            assigned=had,
            instance_id=member.instance_id,
            missing_topic_count=member.missing_topic_count,
        )
        found.set(member_id, subscription)
    return GroupSpec(
        members=found,
        is_homogeneous=taken_for_homogeneous
        or len({frozenset(member.topics) for member in members.values()}) == 1,
        partition_counts={topic_id(topic): count for topic, count in partition_counts.items()},
    )


def assign(
    assignor: str,
    members: Mapping[str, Member],
    partition_counts: Mapping[int, int],
    *,
    taken_for_homogeneous: bool = False,
) -> dict[str, dict[int, list[int]]]:
    """Return each member's partitions by topic, in the order of its target."""
    group = group_of(members, partition_counts, taken_for_homogeneous=taken_for_homogeneous)
    targets = ASSIGNORS[assignor].assign(group)
    return {
        member_id: {int.from_bytes(topic): list(numbers) for topic, numbers in target.items()}
        for member_id, target in targets.items()
    }

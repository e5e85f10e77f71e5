"""The work of an assignor for a group (TargetAssignmentBuilder): partitions over all members."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import (
    Assignment,
    GroupSpec,
    MemberSubscription,
    PartitionAssignor,
    PartitionAssignorError,
)
from kvorum.groups.modern_group.group import MemberT
from kvorum.metadata.api import RequestError
from kvorum.metadata.java_hash import JavaHashMap
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode

NO_PARTITIONS: Assignment = {}


def group_spec(
    members: Iterable[MemberT],
    topics: TopicsImage,
    *,
    names_of: Callable[[MemberT], OrderedSet[str]],
    previous_target: Callable[[MemberT], Assignment | None],
    is_homogeneous: bool,
    assignable: Mapping[bytes, Collection[int]] | None = None,
) -> GroupSpec:
    """Return the input of an assignor.

    `names_of` returns the topics that a member subscribes to, `previous_target` the target that it
    has had, None for none. Without `assignable` members may get all partitions of their topics.
    """
    subscriptions: JavaHashMap[MemberSubscription] = JavaHashMap()
    counts: dict[bytes, int] = {}
    for member in members:
        names = names_of(member)
        ids = topic_ids(names, topics)
        counts.update((topic_id, len(topics.by_id[topic_id].partitions)) for topic_id in ids)
        subscriptions.set(
            member.member_id,
            MemberSubscription(
                topic_ids=ids,
                assigned=previous_target(member) or NO_PARTITIONS,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                missing_topic_count=len(names) - len(ids),
            ),
        )
    return GroupSpec(subscriptions, is_homogeneous, counts, assignable)


def assigned_targets(assignor: PartitionAssignor, group: GroupSpec) -> dict[str, Assignment]:
    """Return the new target of each member.

    Raises UNKNOWN_SERVER_ERROR, of which Kafka tells its clients no reason, if the assignor fails.
    """
    try:
        return assignor.assign(group)
    except PartitionAssignorError as error:
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def changed_targets(
    group: GroupSpec,
    previous_targets: Mapping[str, Assignment | None],
    targets: Mapping[str, Assignment],
) -> Iterator[tuple[str, Assignment]]:
    """Yield the targets that are others than those before, in the order of Kafka's records."""
    for member_id in group.members.keys():  # noqa: SIM118 - no dict
        target = targets.get(member_id, NO_PARTITIONS)
        if previous_targets[member_id] != target:
            yield member_id, target


def topic_ids(names: OrderedSet[str], topics: TopicsImage) -> OrderedSet[bytes]:
    """Return the ids of those topics that exist, in the order of the names."""
    return OrderedSet(topics.ids[name] for name in names if name in topics.ids)

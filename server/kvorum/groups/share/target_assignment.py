"""The target assignment of a share group, and the records that it needs."""

from collections import Counter
from dataclasses import dataclass

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.assignors.simple_assignor import SimpleAssignor
from kvorum.groups.modern_group.target_assignment import (
    NO_PARTITIONS,
    assigned_targets,
    changed_targets,
    group_spec,
)
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.group_records import (
    target_assignment_metadata_record,
    target_assignment_record,
)
from kvorum.groups.share_group.member import ShareGroupMember
from kvorum.groups.share_group.state_partitions import StatePartitions


@dataclass(frozen=True, slots=True)
class SharingMembers:
    """The members of a group, with the one whose heartbeat is answered as it is from now on.

    `before` is that one as it was.
    """

    group: ShareGroup
    before: ShareGroupMember
    member: ShareGroupMember

    def all(self) -> list[ShareGroupMember]:
        """Return the members in the order that the group has with the answered one."""
        return self.group.members_in_order_with(self.member)

    def topics(self) -> set[str]:
        """Return the topics that the members name."""
        return set(self._name_counts())

    def are_homogeneous(self) -> bool:
        """Return whether members name the same topics, as far as counts of them show."""
        count = self.group.member_count + (not self._is_known)
        return all(one == count for one in self._name_counts().values())

    @property
    def _is_known(self) -> bool:
        return self.group.members.get(self.member.member_id) is not None

    def _name_counts(self) -> Counter[str]:
        names = Counter(self.group.name_subscriber_counts())
        if self._is_known:
            names.subtract(self.before.subscribed_topic_names)
        names.update(self.member.subscribed_topic_names)
        return +names


def compute_target_assignment(
    shard: ShardState,
    sharing: SharingMembers,
    *,
    is_homogeneous: bool,
    group_epoch: int,
    now_ms: int,
    records: list[CoordinatorRecord],
) -> Assignment:
    """Return the answered member's part of the target of an epoch, and add the target's records.

    Only partitions whose state is initialized are assigned. Raises UNKNOWN_SERVER_ERROR if the
    assignor fails.
    """
    group = sharing.group
    state = shard.share_state_partitions.get(group.group_id) or StatePartitions()
    found = sharing.all()
    previous_targets = {one.member_id: group.target_assignment.get(one.member_id) for one in found}
    spec = group_spec(
        found,
        shard.image.topics,
        names_of=lambda member: member.subscribed_topic_names,
        previous_target=lambda member: previous_targets[member.member_id],
        is_homogeneous=is_homogeneous,
        assignable={topic_id: topic.partitions for topic_id, topic in state.initialized.items()},
    )
    targets = assigned_targets(SimpleAssignor(), spec)
    records.extend(
        target_assignment_record(group.group_id, member_id, target)
        for member_id, target in changed_targets(spec, previous_targets, targets)
    )
    records.append(target_assignment_metadata_record(group.group_id, group_epoch, now_ms))
    return targets.get(sharing.member.member_id, NO_PARTITIONS)

"""The target assignment of a consumer group, and the records that it needs."""

from collections import Counter
from dataclasses import dataclass

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.assignors_by_name import ASSIGNORS
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.group_records import (
    target_assignment_metadata_record,
    target_assignment_record,
)
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.modern_group.target_assignment import (
    NO_PARTITIONS,
    assigned_targets,
    changed_targets,
    group_spec,
)
from kvorum.metadata.topics_image import TopicsImage


@dataclass(frozen=True, slots=True)
class TargetAssignment:
    """A target: its epoch, the records that it needs, and the partitions of one member."""

    epoch: int
    of_member: Assignment
    records: tuple[CoordinatorRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscribingMembers:
    """The members of a group, with the one whose heartbeat is answered as it is from now on.

    `before` is that one as it was, and `replaced` the member of the same instance id that it takes
    the place of, None for none.
    """

    group: ConsumerGroup
    before: ConsumerGroupMember
    member: ConsumerGroupMember
    replaced: ConsumerGroupMember | None

    def all(self) -> list[ConsumerGroupMember]:
        """Return the members in the order of the group, the new one last."""
        member_id = self.member.member_id
        # A static member may also come back under its own id.
        gone = None if self.replaced is None else self.replaced.member_id
        members = [
            self.member if one.member_id == member_id else one
            for one in self.group.members_in_order()
            if one.member_id == member_id or one.member_id != gone
        ]
        if self.group.members.get(self.member.member_id) is None:
            members.append(self.member)
        return members

    def topics(self) -> set[str]:
        """Return the topics that the members name, and those that their expressions match."""
        names = Counter(self.group.name_subscriber_counts())
        regexes = Counter(self.group.subscribed_regexes())
        if self.replaced is not None or self.group.members.get(self.member.member_id) is not None:
            names.subtract(self.before.subscribed_topic_names)
            regexes.subtract((self.before.subscribed_topic_regex,))
        names.update(self.member.subscribed_topic_names)
        regexes.update((self.member.subscribed_topic_regex,))
        matched = (self.group.resolved_regexes.get(regex) for regex in +regexes)
        return set(+names).union(*(one.topics for one in matched if one is not None))

    def previous_target(self, member: ConsumerGroupMember) -> Assignment | None:
        """Return the target that a member has had, None for a member without one."""
        found = self.group.target_assignment.get(member.member_id)
        if self.replaced is None or member is not self.member:
            return found
        of_replaced = self.group.target_assignment.get(self.replaced.member_id)
        return found if of_replaced is None else of_replaced

    def last_target(self) -> Assignment | None:
        """Return the target that the answered member goes on with until there is a new one.

        That of a static member is its instance's: one that changes its instance id has none.
        """
        member = self.member
        if not member.is_static:
            return self.group.target_assignment.get(member.member_id)
        static_member = self.group.static_member(member.instance_id)
        if static_member is None:
            return None
        return self.group.target_assignment.get(static_member.member_id)


def compute_target_assignment(
    members: SubscribingMembers,
    topics: TopicsImage,
    *,
    assignor_name: str,
    is_homogeneous: bool,
    group_epoch: int,
    now_ms: int,
) -> TargetAssignment:
    """Return the target of an epoch; raises UNKNOWN_SERVER_ERROR if the assignor fails."""
    group_id = members.group.group_id
    found = members.all()
    previous_targets = {member.member_id: members.previous_target(member) for member in found}
    spec = group_spec(
        found,
        topics,
        names_of=members.group.subscribed_topics_of,
        previous_target=lambda member: previous_targets[member.member_id],
        is_homogeneous=is_homogeneous,
    )
    targets = assigned_targets(ASSIGNORS[assignor_name], spec)
    records = tuple(
        target_assignment_record(group_id, member_id, target)
        for member_id, target in changed_targets(spec, previous_targets, targets)
    )
    last = target_assignment_metadata_record(group_id, group_epoch, now_ms)
    of_member = targets.get(members.member.member_id, NO_PARTITIONS)
    return TargetAssignment(group_epoch, of_member, (*records, last))

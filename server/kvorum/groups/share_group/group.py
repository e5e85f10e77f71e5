"""A share group: its members and the topics that they share, all with a history (ShareGroup)."""

from dataclasses import replace
from enum import Enum

from kvorum.coordinator.timeline_order import timeline_order
from kvorum.groups.modern_group.group import ModernGroup, add_to_count
from kvorum.groups.modern_group.member_state import LEAVE_EPOCH
from kvorum.groups.share_group.member import NO_PARTITIONS, ShareGroupMember


class ShareGroupState(Enum):
    """The states of a share group, by the names that clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"
    UNKNOWN = "Unknown"


class ShareGroup(ModernGroup[ShareGroupMember]):
    """One group; `epoch` None reads the newest state, else that of an epoch of the timeline."""

    def state(self, epoch: int | None = None) -> ShareGroupState:
        """Return the group's state, which follows from its members."""
        has_members = self._member_count.get(epoch) > 0
        return ShareGroupState.STABLE if has_members else ShareGroupState.EMPTY

    def members_in_order_with(self, member: ShareGroupMember) -> list[ShareGroupMember]:
        """Return the members in Kafka's order, a new or changed one among them.

        Kafka puts a new member into the group before it computes the target.
        """
        is_known = self.members.get(member.member_id) is not None
        members = dict(self.members.items())
        members[member.member_id] = member
        most_members = self._most_members
        if not is_known:
            most_members = max(most_members, self.member_count)
        return [members[one] for one in timeline_order(members, most_members)]

    def set_member(self, member: ShareGroupMember) -> None:
        """Replay a member, new or changed."""
        before = self.members.get(member.member_id)
        self._most_members = max(self._most_members, self.member_count)
        if before is None:
            self._member_count.set(self.member_count + 1)
        else:
            self._count(before, -1)
        self._count(member, 1)
        self.members.set(member.member_id, member)
        self._compare_subscriptions()

    def remove_member(self, member_id: str) -> None:
        """Replay the end of a member; one that is not there was compacted away."""
        member = self.members.remove(member_id)
        if member is None:
            return
        self._member_count.set(self.member_count - 1)
        self._count(member, -1)
        self._compare_subscriptions()

    def end_current_assignment(self, member_id: str) -> None:
        """Replay the end of what a member has, which comes before the end of the member."""
        member = self.members.get(member_id)
        if member is not None:
            self.set_member(
                replace(
                    member,
                    member_epoch=LEAVE_EPOCH,
                    previous_member_epoch=LEAVE_EPOCH,
                    assigned=NO_PARTITIONS,
                )
            )

    def member_or_new(self, member_id: str) -> ShareGroupMember:
        """Return a member, as it is or as one that is about to come."""
        return self.members.get(member_id) or ShareGroupMember(member_id=member_id)

    def _count(self, member: ShareGroupMember, step: int) -> None:
        for name in member.subscribed_topic_names:
            add_to_count(self._name_subscribers, name, step)

    def _compare_subscriptions(self) -> None:
        counts = self.name_subscriber_counts().values()
        self._is_homogeneous.set(all(count == self.member_count for count in counts))

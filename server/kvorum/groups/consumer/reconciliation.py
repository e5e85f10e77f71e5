"""The way of a member from what it may own to its target (CurrentAssignmentBuilder, KIP-848).

A member gives up partitions at its old epoch first. It then gets the epoch of the target, with the
partitions of the target that no other member may own; the rest follows as others release them.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.consumer_group.group import NOT_OWNED
from kvorum.groups.consumer_group.member import NO_PARTITIONS, ConsumerGroupMember, PartitionEpochs
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

NOTHING: Final = frozenset[int]()
OwnedPartitions: TypeAlias = Mapping[bytes, Collection[int]]
"""The partitions that a client says it owns, by topic id."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The facts of one heartbeat that decide on a member's next step.

    `owned` is None where the client does not say what it owns: it may own everything.
    `subscribed_topic_ids` are those of existing topics; `names_topics` is False where the member
    subscribes to no topic, existing or not. `owner_epoch` returns the epoch of the
    member that may own a partition, -1 for none.
    """

    target_epoch: int
    target: Assignment
    subscribed_topic_ids: frozenset[bytes]
    names_topics: bool
    owner_epoch: Callable[[bytes, int], int]
    owned: OwnedPartitions | None
    has_subscription_changed: bool

    def step(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """Return the member after its next step; itself if it has no step to take.

        Raises FENCED_MEMBER_EPOCH for one whose state only a later release knows, unless it owns
        nothing.
        """
        match member.state:
            case MemberState.STABLE:
                if member.member_epoch != self.target_epoch:
                    return self._approach_target(member, member.member_epoch)
                return self._maybe_shrink(member)
            case MemberState.UNREVOKED_PARTITIONS:
                if self._may_own(member.pending_revocation):
                    return self._maybe_shrink(member)
                return self._approach_target(member, member.member_epoch)
            case MemberState.UNRELEASED_PARTITIONS:
                return self._approach_target(member, member.member_epoch)
            case MemberState.UNKNOWN:
                if self.owned is None or any(self.owned.values()):
                    raise RequestError(
                        ErrorCode.FENCED_MEMBER_EPOCH,
                        "The consumer group member is in a unknown state. "
                        "The member must abandon all its partitions and rejoin.",
                    )
                return self._approach_target(member, self.target_epoch)

    def _approach_target(
        self, member: ConsumerGroupMember, member_epoch: int
    ) -> ConsumerGroupMember:
        """Return the member with less, if it has to give up something, else with more."""
        kept: dict[bytes, dict[int, int]] = {}
        revoked: dict[bytes, dict[int, int]] = {}
        added: dict[bytes, list[int]] = {}
        has_unreleased = False
        for topic_id in dict.fromkeys((*self.target, *member.assigned)):
            is_subscribed = topic_id in self.subscribed_topic_ids
            wanted = self.target.get(topic_id, NOTHING) if is_subscribed else NOTHING
            assigned = member.assigned.get(topic_id, {})
            _put(kept, topic_id, {one: at for one, at in assigned.items() if one in wanted})
            _put(revoked, topic_id, {one: at for one, at in assigned.items() if one not in wanted})
            new = wanted - assigned.keys()
            pending = member.pending_revocation.get(topic_id, {})
            free = [
                one for one in new if one in pending or self.owner_epoch(topic_id, one) == NOT_OWNED
            ]
            has_unreleased = has_unreleased or len(free) < len(new)
            if free:
                added[topic_id] = free
        if revoked and self._may_own(revoked):
            state = MemberState.UNREVOKED_PARTITIONS
            return member.at_epoch(member_epoch, state, kept, revoked)
        for topic_id, partitions in added.items():
            of_topic = kept.setdefault(topic_id, {})
            of_topic.update(dict.fromkeys(partitions, self.target_epoch))
        state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
        return member.at_epoch(self.target_epoch, state, kept)

    def _maybe_shrink(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """Return the member without the topics that it has just ceased to subscribe to."""
        if not self.has_subscription_changed:
            return member
        kept: dict[bytes, Mapping[int, int]] = {}
        revoked = dict(member.pending_revocation)
        for topic_id, partitions in member.assigned.items():
            if topic_id in self.subscribed_topic_ids:
                kept[topic_id] = partitions
            else:
                revoked[topic_id] = {**revoked.get(topic_id, {}), **partitions}
        # A member that names no topic takes a step also where it has nothing to give up, unless it
        # has never been assigned anything: of such a one Kafka finds the very same empty map.
        is_unassigned = member.assigned is NO_PARTITIONS
        may_stay = self.names_topics or member.pending_revocation or is_unassigned
        if may_stay and len(kept) == len(member.assigned):
            return member
        if revoked and self._may_own(revoked):
            state = MemberState.UNREVOKED_PARTITIONS
            return member.at_epoch(member.member_epoch, state, kept, revoked)
        pending = member.pending_revocation
        return member.at_epoch(member.member_epoch, member.state, kept, pending)

    def _may_own(self, partitions: PartitionEpochs) -> bool:
        """Whether the client may own one of the partitions still."""
        if self.owned is None:
            return True
        return any(
            partition in partitions.get(topic_id, ())
            for topic_id, owned in self.owned.items()
            for partition in owned
        )


def _put(
    partitions: dict[bytes, dict[int, int]], topic_id: bytes, of_topic: dict[int, int]
) -> None:
    if of_topic:
        partitions[topic_id] = of_topic

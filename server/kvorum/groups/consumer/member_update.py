"""The consequence for a consumer group of one member's join or heartbeat: epochs, target, its step.

Members of both protocols go the same way (KIP-848): the topics that members subscribe to decide on
the group's epoch, the epoch on the target, and the target on what the member may own.
"""

from dataclasses import dataclass

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.consumer.assignor_votes import preferred_assignor, preferred_assignor_after
from kvorum.groups.consumer.reconciliation import OwnedPartitions, Reconciliation
from kvorum.groups.consumer.regular_expressions import RegexChange, RegularExpressions
from kvorum.groups.consumer.target_assignment import (
    SubscribingMembers,
    TargetAssignment,
    compute_target_assignment,
)
from kvorum.groups.consumer_group.group import ConsumerGroup, are_homogeneous
from kvorum.groups.consumer_group.group_records import (
    current_assignment_record,
    group_epoch_record,
    member_record,
    member_tombstones,
    partition_metadata_tombstone,
    target_assignment_record,
)
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.modern_group.group import METADATA_REFRESH_MS
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.groups.modern_group.target_assignment import NO_PARTITIONS, topic_ids
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import MemberRebalance, rebalance_timeout_key


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The epoch of the members' subscriptions, and whether they were looked at for it."""

    group_epoch: int
    are_refreshed: bool


@dataclass(frozen=True, slots=True)
class MemberUpdate:
    """A member as it is from now on, in its group; `records` grow with each step.

    `owned` are the partitions that its client says it owns, None where it does not say.
    """

    shard: ShardState
    context: RequestContext
    subscribing: SubscribingMembers
    owned: OwnedPartitions | None
    now_ms: int
    records: list[CoordinatorRecord]

    @property
    def group(self) -> ConsumerGroup:
        """The group, as it was before the request."""
        return self.subscribing.group

    @property
    def has_new_names(self) -> bool:
        """Whether the member names other topics than it did."""
        before, member = self.subscribing.before, self.subscribing.member
        return member.subscribed_topic_names != before.subscribed_topic_names

    def change_subscription(self) -> RegexChange:
        """Write the member if anything of it differs; return what its expression changes."""
        before, member = self.subscribing.before, self.subscribing.member
        if member != before:
            self.records.append(member_record(self.group.group_id, member))
        regexes = RegularExpressions(self.shard, self.context, self.group, self.now_ms)
        change = regexes.change(before, member)
        self.records.extend(change.records)
        return change

    def has_new_assignor(self) -> bool:
        """Return whether the group prefers another assignor with this member."""
        present = self._known(preferred_assignor(self.group.assignor_votes()))
        return self._assignor() != present

    def subscriptions(self, *, is_bumped: bool) -> Subscriptions:
        """Return the epoch of the group, a new one if its members' topics are others.

        A member with a new regular expression that is not resolved yet counts as it was before.
        """
        group = self.group
        epochs = group.epochs()
        if not is_bumped and not group.has_metadata_expired(self.now_ms):
            return Subscriptions(epochs.group_epoch, are_refreshed=False)
        topics = self.subscribing.topics()
        metadata_hash = self.shard.topic_hashes.of_group(topics, self.shard.image)
        group_epoch = epochs.group_epoch
        if is_bumped or metadata_hash != epochs.metadata_hash:
            group_epoch += 1
            self.records.append(group_epoch_record(group.group_id, group_epoch, metadata_hash))
        group.set_metadata_deadline(self.now_ms + METADATA_REFRESH_MS, group_epoch)
        if group.has_partition_metadata:
            self.records.append(partition_metadata_tombstone(group.group_id))
        return Subscriptions(group_epoch, are_refreshed=True)

    def target(self, subscriptions: Subscriptions) -> TargetAssignment:
        """Return the target of the group's epoch if it is time for it, else the one there is."""
        group = self.group
        epochs = group.epochs()
        interval_ms = self.shard.group_config(group.group_id).assignment_interval_ms
        if not epochs.is_assignment_due(subscriptions.group_epoch, interval_ms, self.now_ms):
            return self.present_target()
        target = compute_target_assignment(
            self.subscribing,
            self.shard.image.topics,
            assignor_name=self._assignor(),
            is_homogeneous=(
                are_homogeneous(self.subscribing.all())
                if subscriptions.are_refreshed
                else group.is_homogeneous()
            ),
            group_epoch=subscriptions.group_epoch,
            now_ms=self.now_ms,
        )
        self.records.extend(target.records)
        return target

    def present_target(self) -> TargetAssignment:
        """Return the target that there is."""
        last_target = self.subscribing.last_target()
        return TargetAssignment(self.group.epochs().assignment_epoch, last_target or NO_PARTITIONS)

    def reconcile(
        self, target: TargetAssignment, *, has_new_subscription: bool
    ) -> ConsumerGroupMember:
        """Return the member after its next step, with the record and the timer of that step.

        A member of the classic protocol has timers of its own, for its join and its sync.
        """
        group, member = self.group, self.subscribing.member
        names = group.subscribed_topics_of(member)
        reconciled = Reconciliation(
            target_epoch=target.epoch,
            target=target.of_member,
            subscribed_topic_ids=topic_ids(names, self.shard.image.topics),
            names_topics=bool(names),
            owner_epoch=group.owner_epoch,
            owned=self.owned,
            has_subscription_changed=has_new_subscription,
        ).step(member)
        if reconciled == member:
            return member
        self.records.append(current_assignment_record(group.group_id, reconciled))
        if reconciled.uses_classic_protocol:
            return reconciled
        if reconciled.state is MemberState.UNREVOKED_PARTITIONS:
            timeout = MemberRebalance(group.group_id, reconciled.member_id, reconciled.member_epoch)
            timeout_ms = reconciled.rebalance_timeout_ms
            self.shard.outbox.set_timer(timeout, timeout_ms, is_retried=True)
        else:
            self.shard.outbox.cancel_timer(
                rebalance_timeout_key(group.group_id, reconciled.member_id)
            )
        return reconciled

    def _assignor(self) -> str:
        """Return the assignor that the group prefers with the member as it is from now on."""
        return self._known(
            preferred_assignor_after(
                self.group.assignor_votes(),
                taken_back=self.subscribing.before.server_assignor,
                given=self.subscribing.member.server_assignor,
            )
        )

    def _known(self, assignor: str | None) -> str:
        """Return an assignor that the broker has: the default one for another and for none."""
        known = self.shard.settings.consumer.assignors
        return assignor if assignor in known else known[0]


def replacement_records(
    group: ConsumerGroup, old: ConsumerGroupMember, new: ConsumerGroupMember
) -> list[CoordinatorRecord]:
    """Return the records by which a static member comes back under a new id, with its old target.

    The session of the old one ends by itself, and then concerns no member.
    """
    group_id = group.group_id
    target = group.target_assignment.get(old.member_id) or NO_PARTITIONS
    return [
        *member_tombstones(group_id, old.member_id),
        member_record(group_id, new),
        target_assignment_record(group_id, new.member_id, target),
        current_assignment_record(group_id, new),
    ]

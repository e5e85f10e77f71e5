"""A consumer group: members, epochs, targets and owners, all with a history (ConsumerGroup)."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from kvorum.coordinator.timeline import Timeline, TimelineMap, TimelineValue
from kvorum.groups.assignors.name_order import union_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.classic_group.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kvorum.groups.consumer_group.member import NO_PARTITIONS, ConsumerGroupMember, PartitionEpochs
from kvorum.groups.modern_group.group import ModernGroup, add_to_count
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, LEAVE_EPOCH

NOT_OWNED: Final = -1
NEVER: Final = -(2**63)


class ConsumerGroupState(Enum):
    """The states of a consumer group, by the names that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """The topics that a regular expression has matched.

    `version` is the offset of the metadata that they were taken from.
    """

    topics: OrderedSet[str]
    version: int
    timestamp_ms: int


class ConsumerGroup(ModernGroup[ConsumerGroupMember]):
    """One group; `epoch` None reads the newest state, else that of an epoch of the timeline."""

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        super().__init__(group_id, timeline)
        self.static_members = TimelineMap[str, str](timeline)
        """Member ids by instance id."""
        self.resolved_regexes = TimelineMap[str, ResolvedRegularExpression](timeline)
        self._has_partition_metadata = TimelineValue(timeline, False)
        self._owner_epochs = TimelineMap[tuple[bytes, int], int](timeline)
        self._regex_subscribers = TimelineMap[str, int](timeline)
        self._assignor_votes = TimelineMap[str, int](timeline)
        self._classic_member_count = TimelineValue(timeline, 0)
        self._classic_protocols = TimelineMap[str, int](timeline)
        """The number of classic members that support each protocol of clients."""
        self._has_new_counts = TimelineValue(timeline, False)

    # Questions.

    def state(self, epoch: int | None = None) -> ConsumerGroupState:
        """Return the group's state, which follows from its epochs and its members."""
        if self._member_count.get(epoch) == 0:
            return ConsumerGroupState.EMPTY
        epochs = self.epochs(epoch)
        if epochs.group_epoch > epochs.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        members = self.members.values(epoch)
        if all(member.is_reconciled_to(epochs.assignment_epoch) for member in members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def supports_classic_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a member of the classic protocol can join with these protocols."""
        count = self._classic_member_count.get()
        return protocol_type == CONSUMER_PROTOCOL_TYPE and any(
            (self._classic_protocols.get(name) or 0) == count for name in names
        )

    def uses_classic_protocol_without(self, gone: Collection[ConsumerGroupMember]) -> bool:
        """Return whether all other members than these use the classic protocol."""
        classic_gone_count = sum(member.uses_classic_protocol for member in gone)
        remaining_count = self.member_count - len(gone)
        return self._classic_member_count.get() - classic_gone_count == remaining_count

    def static_member(self, instance_id: str | None) -> ConsumerGroupMember | None:
        """Return the member with an instance id, None without one."""
        if instance_id is None:
            return None
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def owner_epoch(self, topic_id: bytes, partition: int) -> int:
        """Return the epoch of the member that may own a partition; -1 where it is free."""
        found = self._owner_epochs.get((topic_id, partition))
        return NOT_OWNED if found is None else found

    def awaits_release(self, member: ConsumerGroupMember) -> bool:
        """Return whether another member may still own a partition of a member's target."""
        target = self.target_assignment.get(member.member_id) or {}
        return any(
            self.owner_epoch(topic_id, partition) != NOT_OWNED
            for topic_id, partitions in target.items()
            for partition in partitions
            if partition not in member.assigned.get(topic_id, ())
        )

    def owners(self) -> Iterator[tuple[tuple[bytes, int], int]]:
        """Yield each partition that a member may own, with the member's epoch."""
        return self._owner_epochs.items()

    def subscribed_regexes(self) -> dict[str, int]:
        """Return the number of subscribers of each regular expression."""
        return dict(self._regex_subscribers.items())

    def regex_subscriber_count(self, regex: str) -> int:
        """Return how many members have a regular expression."""
        return self._regex_subscribers.get(regex) or 0

    @property
    def has_partition_metadata(self) -> bool:
        """Whether the log has a record of topics from an earlier release, which is to be ended."""
        return self._has_partition_metadata.get()

    def assignor_votes(self, epoch: int | None = None) -> dict[str, int]:
        """Return how many members ask for each assignor."""
        return dict(self._assignor_votes.items(epoch))

    def subscribed_topics_of(
        self, member: ConsumerGroupMember, epoch: int | None = None
    ) -> OrderedSet[str]:
        """Return the names of a member's topics: those it names, and those its regex matches."""
        resolved = self.resolved_regexes.get(member.subscribed_topic_regex, epoch)
        if resolved is None:
            return member.subscribed_topic_names
        return OrderedSet(
            union_in_order(tuple(member.subscribed_topic_names), tuple(resolved.topics))
        )

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member consumes a topic."""
        if super().is_subscribed_to(topic):
            return True
        return any(topic in resolved.topics for resolved in self.resolved_regexes.values())

    def last_regex_refresh_ms(self) -> int:
        """Return when a regular expression was last resolved; a time before all without one."""
        return max((one.timestamp_ms for one in self.resolved_regexes.values()), default=NEVER)

    def last_regex_version(self) -> int:
        """Return the newest metadata that a regular expression was resolved with; 0 for none."""
        return max((one.version for one in self.resolved_regexes.values()), default=0)

    # Changes by records.

    def set_partition_metadata(self, *, is_there: bool) -> None:
        """Replay the record of topics of an earlier release, or its end."""
        self._has_partition_metadata.set(is_there)

    def set_member(self, member: ConsumerGroupMember) -> None:
        """Replay a member, new or changed."""
        before = self.members.get(member.member_id)
        self._most_members = max(self._most_members, self.member_count)
        if before is None:
            self._member_count.set(self.member_count + 1)
            self._count(member, 1)
        elif not _has_same_subscription(before, member):
            self._count(before, -1)
            self._count(member, 1)
        if before is not None and before.instance_id is not None:
            self.static_members.remove(before.instance_id)
        if member.instance_id is not None:
            self.static_members.set(member.instance_id, member.member_id)
        if before is not None:
            self._disown(before)
        self._own(member)
        self.members.set(member.member_id, member)
        self._compare_subscriptions()

    def remove_member(self, member_id: str) -> None:
        """Replay the end of a member; one that is not there was compacted away."""
        member = self.members.remove(member_id)
        if member is None:
            return
        self._member_count.set(self.member_count - 1)
        self._count(member, -1)
        self._disown(member)
        if member.instance_id is not None:
            self.static_members.remove(member.instance_id)
        self._compare_subscriptions()

    def set_resolved_regex(self, regex: str, resolved: ResolvedRegularExpression) -> None:
        """Replay the topics that a regular expression matches."""
        self.resolved_regexes.set(regex, resolved)
        self._has_new_counts.set(True)

    def remove_resolved_regex(self, regex: str) -> None:
        """Replay the end of a regular expression."""
        self.resolved_regexes.remove(regex)
        self._has_new_counts.set(True)

    def end_current_assignment(self, member_id: str) -> None:
        """Replay the end of what a member may own, which comes before the end of the member."""
        member = self.members.get(member_id)
        if member is not None:
            self.set_member(
                replace(
                    member,
                    member_epoch=LEAVE_EPOCH,
                    previous_member_epoch=LEAVE_EPOCH,
                    assigned=NO_PARTITIONS,
                    pending_revocation=NO_PARTITIONS,
                )
            )

    def member_or_new(self, member_id: str) -> ConsumerGroupMember:
        """Return a member, as it is or as one that is about to come."""
        return self.members.get(member_id) or ConsumerGroupMember(
            member_id=member_id, member_epoch=JOIN_EPOCH
        )

    def _compare_subscriptions(self) -> None:
        """See whether all members subscribe to the same topics, if counts of them have changed."""
        if not self._has_new_counts.get():
            return
        self._has_new_counts.set(False)
        count = self.member_count
        names = dict(self._name_subscribers.items())
        regexes = dict(self._regex_subscribers.items())
        matched = Counter(
            topic for resolved in self.resolved_regexes.values() for topic in resolved.topics
        )
        if regexes:
            is_one_regex = not names and list(regexes.values()) == [count]
            self._is_homogeneous.set(is_one_regex and all(one == 1 for one in matched.values()))
        else:
            topics = {**dict.fromkeys(matched, 0), **names}
            self._is_homogeneous.set(all(one == count for one in topics.values()))

    def _count(self, member: ConsumerGroupMember, step: int) -> None:
        self._has_new_counts.set(True)
        for name in member.subscribed_topic_names:
            add_to_count(self._name_subscribers, name, step)
        if member.subscribed_topic_regex:
            add_to_count(self._regex_subscribers, member.subscribed_topic_regex, step)
        if member.server_assignor is not None:
            add_to_count(self._assignor_votes, member.server_assignor, step)
        if member.classic_metadata is not None:
            self._classic_member_count.set(self._classic_member_count.get() + step)
            for protocol in member.classic_metadata.supported_protocols:
                add_to_count(self._classic_protocols, protocol.name, step)

    def _disown(self, member: ConsumerGroupMember) -> None:
        for where in _places(member.assigned, member.pending_revocation):
            # The log may have been compacted: another member may own it already.
            if self._owner_epochs.get(where) == member.member_epoch:
                self._owner_epochs.remove(where)

    def _own(self, member: ConsumerGroupMember) -> None:
        for where in _places(member.assigned, member.pending_revocation):
            self._owner_epochs.set(where, member.member_epoch)


def _has_same_subscription(one: ConsumerGroupMember, other: ConsumerGroupMember) -> bool:
    return (
        one.subscribed_topic_names == other.subscribed_topic_names
        and one.subscribed_topic_regex == other.subscribed_topic_regex
        and one.server_assignor == other.server_assignor
        and one.classic_metadata == other.classic_metadata
    )


def are_homogeneous(members: Iterable[ConsumerGroupMember]) -> bool:
    """Return whether members subscribe to the same topics, as far as counts of them show."""
    count = 0
    names: Counter[str] = Counter()
    regexes: Counter[str] = Counter()
    for member in members:
        count += 1
        names.update(member.subscribed_topic_names)
        if member.subscribed_topic_regex:
            regexes[member.subscribed_topic_regex] += 1
    if not regexes:
        return all(subscribers == count for subscribers in names.values())
    return not names and list(regexes.values()) == [count]


def _places(*partitions: PartitionEpochs) -> Iterator[tuple[bytes, int]]:
    return (
        (topic_id, partition)
        for epochs in partitions
        for topic_id, by_partition in epochs.items()
        for partition in by_partition
    )


def owned_of(
    topic_partitions: Collection[tuple[bytes, Collection[int]]],
) -> Mapping[bytes, frozenset[int]]:
    """Return partitions by topic id; a topic that is there twice counts once."""
    owned: dict[bytes, frozenset[int]] = {}
    for topic_id, partitions in topic_partitions:
        owned[topic_id] = owned.get(topic_id, frozenset()) | frozenset(partitions)
    return owned

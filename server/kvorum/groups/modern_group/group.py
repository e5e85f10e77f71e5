"""A group of the consumer or share protocol: its members, epochs and targets, with a history."""

from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar

from kvorum.coordinator.timeline import Timeline, TimelineMap, TimelineValue
from kvorum.coordinator.timeline_order import timeline_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

FIRST_EPOCH: Final = 1
NO_ASSIGNMENT_EPOCH: Final = -1
METADATA_REFRESH_MS: Final = 2**31 - 1
"""The time after which a group looks at its topics unasked; in practice events come first."""


@dataclass(frozen=True, slots=True)
class GroupEpochs:
    """The epoch of the group's members and topics, and that of its newest target assignment.

    `assignment_timestamp_ms` is the time at which that was computed, 0 for none.
    """

    group_epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0

    def is_assignment_due(self, group_epoch: int, interval_ms: int, now_ms: int) -> bool:
        """Return whether to compute the target of an epoch.

        That is so where it has no target yet, and the last target is older than `interval_ms`.
        """
        is_time = (
            interval_ms == 0
            or self.assignment_timestamp_ms == 0
            or now_ms >= self.assignment_timestamp_ms + interval_ms
        )
        return self.assignment_epoch < group_epoch and is_time


class ModernGroupMember(Protocol):
    """A member, as a group has to know it."""

    @property
    def member_id(self) -> str:
        """The id under which the member is in the group."""
        ...

    @property
    def instance_id(self) -> str | None:
        """The id of a static member, None for others."""
        ...

    @property
    def rack_id(self) -> str | None:
        """The rack of the member's client, None where it names none."""
        ...

    @property
    def subscribed_topic_names(self) -> OrderedSet[str]:
        """The topics that the member names."""
        ...


MemberT = TypeVar("MemberT", bound=ModernGroupMember)


class ModernGroup(Generic[MemberT]):
    """One group; `epoch` None reads the newest state, else that of an epoch of the timeline."""

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        self.group_id = group_id
        self.members = TimelineMap[str, MemberT](timeline)
        self.target_assignment = TimelineMap[str, Assignment](timeline)
        """The partitions that each member is to have, by its id."""
        self._epochs = TimelineValue(timeline, GroupEpochs())
        self._member_count = TimelineValue(timeline, 0)
        self._name_subscribers = TimelineMap[str, int](timeline)
        self._is_homogeneous = TimelineValue(timeline, True)
        self._most_members = 0
        """The greatest number of members that there were when a member was put among them."""
        self._metadata_deadline_ms = 0
        self._metadata_epoch = 0

    # Questions.

    def epochs(self, epoch: int | None = None) -> GroupEpochs:
        """Return the group's epochs."""
        return self._epochs.get(epoch)

    @property
    def member_count(self) -> int:
        """The number of members."""
        return self._member_count.get()

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return self.member_count == 0

    def member(self, member_id: str, epoch: int | None = None) -> MemberT:
        """Return a member; refuses the id of none with UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id, epoch)
        if member is None:
            raise RequestError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def members_in_order(self, epoch: int | None = None) -> list[MemberT]:
        """Return the members in the order in which Kafka goes through them."""
        members = dict(self.members.items(epoch))
        return [members[one] for one in timeline_order(members, self._most_members)]

    def name_subscriber_counts(self) -> dict[str, int]:
        """Return how many members name each topic; regular expressions do not count."""
        return dict(self._name_subscribers.items())

    def is_homogeneous(self) -> bool:
        """Return whether all members subscribed to the same topics, as far as counts show.

        It is the answer of the moment at which a member was changed last: the end of a regular
        expression, which comes after that of its last subscriber, does not change it.
        """
        return self._is_homogeneous.get()

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member names a topic."""
        return bool(self._name_subscribers.get(topic))

    def has_metadata_expired(self, now_ms: int) -> bool:
        """Return whether the topics have to be looked at again.

        A deadline of an epoch that was taken back does not count.
        """
        is_of_lost_epoch = self.epochs().group_epoch < self._metadata_epoch
        return now_ms >= self._metadata_deadline_ms or is_of_lost_epoch

    # State outside of records.

    def set_metadata_deadline(self, deadline_ms: int, group_epoch: int) -> None:
        """Have the topics looked at again at a time, or when `group_epoch` is taken back."""
        self._metadata_deadline_ms = deadline_ms
        self._metadata_epoch = group_epoch

    def request_metadata_refresh(self) -> None:
        """Have the next heartbeat look at the topics again."""
        self.set_metadata_deadline(0, 0)

    # Changes by records.

    def set_group_epoch(self, group_epoch: int, metadata_hash: int) -> None:
        """Replay the epoch of the group."""
        self._change_epochs(group_epoch=group_epoch, metadata_hash=metadata_hash)

    def set_assignment_epoch(self, assignment_epoch: int, timestamp_ms: int) -> None:
        """Replay the epoch of the target assignment."""
        self._change_epochs(assignment_epoch=assignment_epoch, assignment_timestamp_ms=timestamp_ms)

    def end_target_assignment(self) -> None:
        """Replay the end of the epoch of the target assignment, with which the group ends."""
        self.set_assignment_epoch(NO_ASSIGNMENT_EPOCH, 0)

    def _change_epochs(self, **changes: int) -> None:
        self._epochs.set(replace(self._epochs.get(), **changes))


def add_to_count(counts: TimelineMap[str, int], key: str, step: int) -> None:
    """Change how many there are of a key, which is not there without any."""
    count = (counts.get(key) or 0) + step
    if count:
        counts.set(key, count)
    else:
        counts.remove(key)

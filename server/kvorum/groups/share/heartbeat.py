"""ShareGroupHeartbeat (KIP-932): a member joins, stays or leaves, and hears what it shares."""

from dataclasses import dataclass, field, replace
from typing import Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.decision import Decision
from kvorum.groups.modern_group.group import METADATA_REFRESH_MS
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, LEAVE_EPOCH, MemberState
from kvorum.groups.modern_group.target_assignment import topic_ids
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share.fencing import remove_member, start_session
from kvorum.groups.share.state_initialization import initialize_new_partitions
from kvorum.groups.share.target_assignment import SharingMembers, compute_target_assignment
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.group_records import (
    current_assignment_record,
    group_epoch_record,
    member_record,
)
from kvorum.groups.share_group.member import NO_PARTITIONS, ShareGroupMember
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

_ASSIGNMENT: Final = ShareGroupHeartbeatResponse.Assignment
_TOPIC_PARTITIONS: Final = ShareGroupHeartbeatResponse.TopicPartitions


@dataclass(frozen=True, slots=True)
class ShareHeartbeatAnswer:
    """The response to a member, and the partitions whose state is to be initialized after it.

    `initialize` is None without such partitions.
    """

    response: ShareGroupHeartbeatResponse
    initialize: InitializeShareGroupStateRequest | None = None
    is_rebalance: bool = False
    """Whether the heartbeat has given the group a new epoch."""


def share_group_heartbeat(
    shard: ShardState, context: RequestContext, request: ShareGroupHeartbeatRequest, now_ms: int
) -> tuple[Decision, ShareHeartbeatAnswer]:
    """Return the records and the answer; raises a RequestError and leaves the group as it was."""
    if request.member_epoch == LEAVE_EPOCH:
        return _leave(shard, request)
    records, answer = Heartbeat(shard, context, request, now_ms).decide()
    return Decision(tuple(records), replay_records=True), answer


def _leave(
    shard: ShardState, request: ShareGroupHeartbeatRequest
) -> tuple[Decision, ShareHeartbeatAnswer]:
    group = shard.share_group(request.group_id)
    decision = remove_member(shard, group, group.member(request.member_id))
    response = ShareGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return decision, ShareHeartbeatAnswer(response)


@dataclass(slots=True)
class Heartbeat:
    """One heartbeat of a member that joins or stays; `records` grow as it is decided on."""

    shard: ShardState
    context: RequestContext
    request: ShareGroupHeartbeatRequest
    now_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list[CoordinatorRecord])

    def decide(self) -> tuple[list[CoordinatorRecord], ShareHeartbeatAnswer]:
        """Return the records and the answer."""
        group = self._group()
        self._demand_room(group)
        before = self._member(group)
        member = self._with_request(before)
        if member != before:
            self.records.append(member_record(group.group_id, member))
        sharing = SharingMembers(group, before, member)
        has_new_names = member.subscribed_topic_names != before.subscribed_topic_names
        present_epochs = group.epochs()
        has_new_partitions = (
            present_epochs.assignment_epoch >= present_epochs.group_epoch
            and self._has_unassigned_partitions(group)
        )
        is_refreshed = (
            has_new_names or has_new_partitions or group.has_metadata_expired(self.now_ms)
        )
        topics = sharing.topics() if is_refreshed else set(group.name_subscriber_counts())
        group_epoch = present_epochs.group_epoch
        if is_refreshed:
            group_epoch = self._refresh(
                group, topics, is_bumped=has_new_names or has_new_partitions
            )
        target_epoch, target = self._target(sharing, group_epoch, is_refreshed=is_refreshed)
        is_bumped = group_epoch > present_epochs.group_epoch
        reconciled = self._reconcile(member, target_epoch, target, is_bumped=is_bumped)
        start_session(self.shard, group.group_id, member.member_id)
        initialize = initialize_new_partitions(
            self.shard, group.group_id, group_epoch, topics, self.now_ms, self.records
        )
        response = self._response(before, reconciled)
        return self.records, ShareHeartbeatAnswer(response, initialize, is_bumped)

    # The group and the member.

    def _group(self) -> ShareGroup:
        """Return the group, a new one if a member joins where there is no group."""
        group_id = self.request.group_id
        if self.shard.groups.get(group_id) is not None:
            return self.shard.share_group(group_id)
        if self.request.member_epoch != JOIN_EPOCH:
            raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return ShareGroup(group_id, self.shard.timeline)

    def _demand_room(self, group: ShareGroup) -> None:
        """Refuse a new member of a full group with GROUP_MAX_SIZE_REACHED."""
        size_max = self.shard.settings.share.max_size
        is_known = group.members.get(self.request.member_id) is not None
        if group.member_count >= size_max and not is_known:
            raise RequestError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {size_max} members.",
            )

    def _member(self, group: ShareGroup) -> ShareGroupMember:
        """Return the member as it was; refuses one that is at another epoch.

        A member that has missed an answer may be at the epoch before.
        """
        received = self.request.member_epoch
        if received == JOIN_EPOCH:
            return group.member_or_new(self.request.member_id)
        member = group.member(self.request.member_id)
        if received > member.member_epoch:
            comparison = "greater"
            end = ""
        elif received < member.member_epoch and received != member.previous_member_epoch:
            comparison = "smaller"
            end = (
                ", and it does not match the previous member epoch "
                f"({member.previous_member_epoch})"
            )
        else:
            return member
        raise RequestError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a {comparison} member epoch ({received}) than the one "
            f"known by the group coordinator ({member.member_epoch}){end}. The member must abandon "
            "all its partitions and rejoin.",
        )

    def _with_request(self, member: ShareGroupMember) -> ShareGroupMember:
        """Return the member with what the request says of it."""
        rack_id = self.request.rack_id
        names = self.request.subscribed_topic_names
        return replace(
            member,
            rack_id=member.rack_id if rack_id is None else rack_id,
            subscribed_topic_names=(
                member.subscribed_topic_names
                if names is None
                else OrderedSet(names_in_order(names))
            ),
            client_id=self.context.client_id,
            client_host=self.context.client_host,
        )

    # Epochs, target and the member's step.

    def _has_unassigned_partitions(self, group: ShareGroup) -> bool:
        """Return whether subscribed topics have other initialized partitions than are assigned."""
        state = self.shard.share_state_partitions.get(group.group_id)
        if state is None or not state.initialized:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in group.target_assignment.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            group.is_subscribed_to(topic.name)
            and (topic_id not in assigned or frozenset(assigned[topic_id]) != topic.partitions)
            for topic_id, topic in state.initialized.items()
        )

    def _refresh(self, group: ShareGroup, topics: set[str], *, is_bumped: bool) -> int:
        """Look at the topics; return the epoch of the group, a new one if they are others."""
        epochs = group.epochs()
        group_epoch = epochs.group_epoch
        metadata_hash = self.shard.topic_hashes.of_group(topics, self.shard.image)
        if is_bumped or metadata_hash != epochs.metadata_hash:
            group_epoch += 1
            self.records.append(group_epoch_record(group.group_id, group_epoch, metadata_hash))
        group.set_metadata_deadline(self.now_ms + METADATA_REFRESH_MS, group_epoch)
        return group_epoch

    def _target(
        self, sharing: SharingMembers, group_epoch: int, *, is_refreshed: bool
    ) -> tuple[int, Assignment]:
        """Return the epoch of the target, and the member's part: new if it is time for it."""
        group = sharing.group
        epochs = group.epochs()
        interval_ms = self.shard.share_group_config(group.group_id).assignment_interval_ms
        if not epochs.is_assignment_due(group_epoch, interval_ms, self.now_ms):
            present = group.target_assignment.get(sharing.member.member_id)
            return epochs.assignment_epoch, present or NO_PARTITIONS
        target = compute_target_assignment(
            self.shard,
            sharing,
            is_homogeneous=(sharing.are_homogeneous() if is_refreshed else group.is_homogeneous()),
            group_epoch=group_epoch,
            now_ms=self.now_ms,
            records=self.records,
        )
        return group_epoch, target

    def _reconcile(
        self, member: ShareGroupMember, target_epoch: int, target: Assignment, *, is_bumped: bool
    ) -> ShareGroupMember:
        """Return the member with its part of the target, at once: no other has to give it up."""
        if member.is_reconciled_to(target_epoch) and not is_bumped:
            return member
        subscribed = topic_ids(member.subscribed_topic_names, self.shard.image.topics)
        assigned = {one: numbers for one, numbers in target.items() if one in subscribed}
        if member.member_epoch != target_epoch:
            reconciled = replace(
                member,
                member_epoch=target_epoch,
                previous_member_epoch=member.member_epoch,
                state=MemberState.STABLE,
                assigned=assigned,
            )
        elif is_bumped:
            reconciled = replace(member, assigned=assigned)
        else:
            return member
        if reconciled != member:
            self.records.append(current_assignment_record(self.request.group_id, reconciled))
        return reconciled

    def _response(
        self, before: ShareGroupMember, member: ShareGroupMember
    ) -> ShareGroupHeartbeatResponse:
        """Return the response; it has the assignment if the request says all, or it is another."""
        request = self.request
        is_full = request.subscribed_topic_names is not None
        has_assignment = (
            request.member_epoch == JOIN_EPOCH or is_full or member.assigned != before.assigned
        )
        topics = [
            _TOPIC_PARTITIONS(topic_id, list(numbers))
            for topic_id, numbers in member.assigned.items()
        ]
        config = self.shard.share_group_config(request.group_id)
        return ShareGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            assignment=_ASSIGNMENT(topics) if has_assignment else None,
        )

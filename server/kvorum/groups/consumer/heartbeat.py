"""ConsumerGroupHeartbeat (KIP-848): a member joins, stays or leaves, and hears what it may own."""

from dataclasses import dataclass, field, replace
from typing import Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.consumer.fencing import remove_members
from kvorum.groups.consumer.member_update import MemberUpdate, replacement_records
from kvorum.groups.consumer.membership import demand_room, new_member_id, static_member, successor
from kvorum.groups.consumer.reconciliation import OwnedPartitions
from kvorum.groups.consumer.target_assignment import SubscribingMembers
from kvorum.groups.consumer.upgrade import upgrade
from kvorum.groups.consumer_group.group import ConsumerGroup, owned_of
from kvorum.groups.consumer_group.group_records import current_assignment_record
from kvorum.groups.consumer_group.member import (
    LEAVE_STATIC_EPOCH,
    NO_REBALANCE_TIMEOUT,
    ConsumerGroupMember,
    PartitionEpochs,
)
from kvorum.groups.decision import Decision
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, LEAVE_EPOCH
from kvorum.groups.records import group_metadata_tombstone
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.timeouts import MemberSession
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

_ANY_TOPIC_PARTITIONS: Final = ConsumerGroupHeartbeatResponse.TopicPartitions


def consumer_group_heartbeat(
    shard: ShardState,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    now_ms: int,
) -> tuple[Decision, ConsumerGroupHeartbeatResponse]:
    """Return the records and the response; raises a RequestError and leaves the group as it was."""
    if request.member_epoch in {LEAVE_EPOCH, LEAVE_STATIC_EPOCH}:
        return leave(shard, request, now_ms)
    member_id = request.member_id or new_member_id(shard)
    records, response = Heartbeat(shard, context, request, member_id, now_ms).decide()
    return Decision(tuple(records), replay_records=True), response


def leave(
    shard: ShardState, request: ConsumerGroupHeartbeatRequest, now_ms: int
) -> tuple[Decision, ConsumerGroupHeartbeatResponse]:
    """Let a member leave for good (-1), or a static one for the time being (-2)."""
    group, member_id = shard.consumer_group(request.group_id), request.member_id
    if request.instance_id is None:
        member = group.member(member_id)
    else:
        member = static_member(group, request.instance_id, member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=request.member_epoch
    )
    if request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
        left = replace(
            member,
            member_epoch=LEAVE_STATIC_EPOCH,
            assigned=_at_epoch_zero(member.assigned),
            pending_revocation={},
        )
        records = (current_assignment_record(group.group_id, left),)
        return Decision(records, replay_records=True), response
    return remove_members(shard, group, [member], now_ms), response


@dataclass(slots=True)
class Heartbeat:
    """One heartbeat of a member that joins or stays; `records` grow as it is decided on."""

    shard: ShardState
    context: RequestContext
    request: ConsumerGroupHeartbeatRequest
    member_id: str
    """That of the request, or a new one where the first version of it has none."""
    now_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list[CoordinatorRecord])

    def decide(self) -> tuple[list[CoordinatorRecord], ConsumerGroupHeartbeatResponse]:
        """Return the records and the response."""
        request = self.request
        group = self._group()
        demand_room(self.shard, group, self.member_id, request.instance_id)
        replaced = None
        if request.instance_id is None:
            before = self._dynamic_member(group)
        else:
            before, replaced = self._static_member(group, request.instance_id)
        if replaced is not None:
            self.records += replacement_records(group, replaced, before)
        member = self._with_request(before)
        subscribing = SubscribingMembers(group, before, member, replaced)
        update = MemberUpdate(
            self.shard, self.context, subscribing, self._owned(), self.now_ms, self.records
        )
        regex_change = update.change_subscription()
        has_new_names = update.has_new_names
        subscriptions = update.subscriptions(
            is_bumped=has_new_names or regex_change.is_resolved or update.has_new_assignor()
        )
        reconciled = update.reconcile(
            update.target(subscriptions),
            has_new_subscription=has_new_names or regex_change.is_updated,
        )
        self._schedule_session(group, reconciled)
        return self.records, self._response(member, reconciled)

    # The group and the member.

    def _group(self) -> ConsumerGroup:
        """Return the group, a new one if a member joins where there is no group."""
        group_id = self.request.group_id
        found = self.shard.groups.get(group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if self.request.member_epoch != JOIN_EPOCH:
            if found is not None:
                return self.shard.consumer_group(group_id)
            raise RequestError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found."
            )
        if isinstance(found, ShareGroup):
            return self.shard.consumer_group(group_id)
        if found is not None and not found.is_empty:
            return upgrade(self.shard, found, self.now_ms, self.records)
        if found is not None:
            self.records.append(group_metadata_tombstone(group_id))
        return ConsumerGroup(group_id, self.shard.timeline)

    def _dynamic_member(self, group: ConsumerGroup) -> ConsumerGroupMember:
        if self.request.member_epoch == JOIN_EPOCH:
            return group.member_or_new(self.member_id)
        member = group.member(self.member_id)
        self._check_epoch(member)
        return member

    def _static_member(
        self, group: ConsumerGroup, instance_id: str
    ) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
        """Return the member as it was, and the one that it takes the place of."""
        if self.request.member_epoch != JOIN_EPOCH:
            member = static_member(group, instance_id, self.member_id)
            self._check_epoch(member)
            return member, None
        existing = group.static_member(instance_id)
        if existing is None:
            return group.member_or_new(self.member_id), None
        has_left = existing.member_epoch == LEAVE_STATIC_EPOCH
        if not has_left and not existing.uses_classic_protocol:
            raise RequestError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {self.member_id} with instance id {instance_id} cannot join "
                f"the group because the instance id is owned by {existing.member_id} member.",
            )
        return successor(existing, self.member_id), existing

    def _check_epoch(self, member: ConsumerGroupMember) -> None:
        """Refuse a member that is at another epoch, unless it has only missed an answer."""
        received = self.request.member_epoch
        if received == member.member_epoch or self._has_missed_answer(member):
            return
        comparison = "greater" if received > member.member_epoch else "smaller"
        raise RequestError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {comparison} member epoch ({received}) than the one "
            f"known by the group coordinator ({member.member_epoch}). The member must abandon "
            "all its partitions and rejoin.",
        )

    def _has_missed_answer(self, member: ConsumerGroupMember) -> bool:
        """Return whether the request is that of before the member's last step, sent again."""
        received = self.request.member_epoch
        if received > member.member_epoch or received != member.previous_member_epoch:
            return False
        owned = self._owned()
        return owned is not None and member.has_all_of(owned)

    def _with_request(self, member: ConsumerGroupMember) -> ConsumerGroupMember:
        """Return the member with what the request says of it."""
        request, context = self.request, self.context
        names = request.subscribed_topic_names
        timeout_ms = request.rebalance_timeout_ms
        return replace(
            member,
            instance_id=_given(request.instance_id, member.instance_id),
            rack_id=_given(request.rack_id, member.rack_id),
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if timeout_ms == NO_REBALANCE_TIMEOUT else timeout_ms
            ),
            server_assignor=_given(request.server_assignor, member.server_assignor),
            subscribed_topic_names=(
                member.subscribed_topic_names
                if names is None
                else OrderedSet(names_in_order(names))
            ),
            subscribed_topic_regex=(
                member.subscribed_topic_regex
                if request.subscribed_topic_regex is None
                else request.subscribed_topic_regex
            ),
            client_id=context.client_id,
            client_host=context.client_host,
            classic_metadata=None,
        )

    # The response.

    def _schedule_session(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        timeout_ms = self.shard.group_config(group.group_id).session_timeout_ms
        session = MemberSession(group.group_id, member.member_id)
        self.shard.outbox.set_timer(session, timeout_ms, is_retried=True)

    def _response(
        self, member: ConsumerGroupMember, reconciled: ConsumerGroupMember
    ) -> ConsumerGroupHeartbeatResponse:
        """Return the answer; it has the assignment if the request says all, or it is another."""
        request = self.request
        has_subscription = (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        is_full = (
            request.rebalance_timeout_ms != NO_REBALANCE_TIMEOUT
            and has_subscription
            and request.topic_partitions is not None
        )
        has_assignment = (
            request.member_epoch == JOIN_EPOCH or is_full or reconciled.assigned != member.assigned
        )
        config = self.shard.group_config(request.group_id)
        return ConsumerGroupHeartbeatResponse(
            member_id=reconciled.member_id,
            member_epoch=reconciled.member_epoch,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            assignment=_assignment(reconciled.assigned) if has_assignment else None,
        )

    def _owned(self) -> OwnedPartitions | None:
        topics = self.request.topic_partitions
        if topics is None:
            return None
        return owned_of([(topic.topic_id, topic.partitions) for topic in topics])


def _given(value: str | None, present: str | None) -> str | None:
    return present if value is None else value


def _at_epoch_zero(partitions: PartitionEpochs) -> PartitionEpochs:
    return {topic_id: dict.fromkeys(of_topic, 0) for topic_id, of_topic in partitions.items()}


def _assignment(partitions: PartitionEpochs) -> ConsumerGroupHeartbeatResponse.Assignment:
    return ConsumerGroupHeartbeatResponse.Assignment(
        [
            _ANY_TOPIC_PARTITIONS(topic_id, list(of_topic))
            for topic_id, of_topic in partitions.items()
        ]
    )

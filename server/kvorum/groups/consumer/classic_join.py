"""JoinGroup in a consumer group: a member of the classic protocol among those of the new one.

The coordinator assigns the partitions, so the member never leads (KIP-848). It gives up and takes
over partitions by joining again, each time after an answer that a rebalance is in progress.
"""

from dataclasses import dataclass, field, replace

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.classic_group.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedProtocolError,
    subscription_of,
)
from kvorum.groups.classic_group.supported_protocol import supported_protocols
from kvorum.groups.consumer.downgrade import downgrade_by_replacement, is_downgraded_by_replacement
from kvorum.groups.consumer.member_update import MemberUpdate, replacement_records
from kvorum.groups.consumer.membership import demand_room, new_member_id, static_member, successor
from kvorum.groups.consumer.target_assignment import SubscribingMembers
from kvorum.groups.consumer_group.group import ConsumerGroup, owned_of
from kvorum.groups.consumer_group.member import (
    NO_REBALANCE_TIMEOUT,
    NO_REGEX,
    ClassicMemberMetadata,
    ConsumerGroupMember,
)
from kvorum.groups.decision import NO_DECISION, Decision
from kvorum.groups.join_versions import UNKNOWN_MEMBER_ID, needs_member_id, rebalance_timeout_ms
from kvorum.groups.migration_policy import MigrationPolicy
from kvorum.groups.promises import JoinPromise
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import ClassicMemberSync, MemberSession, member_join_key
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse


def join_consumer_group(
    shard: ShardState,
    group: ConsumerGroup,
    context: RequestContext,
    request: JoinGroupRequest,
    promise: JoinPromise,
    now_ms: int,
) -> Decision:
    """Decide on a JoinGroup request for a group with members; raises a RequestError."""
    if shard.settings.consumer.migration_policy is MigrationPolicy.DISABLED:
        raise RequestError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group.group_id} with the classic protocol because "
            "the group migration is disabled.",
        )
    instance_id, member_id = request.group_instance_id, request.member_id
    if member_id == UNKNOWN_MEMBER_ID:
        member_id = new_member_id(shard)
    demand_room(shard, group, member_id, instance_id)
    names = [one.name for one in request.protocols]
    if not group.supports_classic_protocols(request.protocol_type, names):
        raise RequestError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {member_id}'s protocols are not supported.",
        )
    if needs_member_id(context.version, request):
        # Nothing is kept of the id: a join with any other one would do as well.
        response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
        shard.outbox.answer_join(promise, response)
        return NO_DECISION
    return ClassicJoin(shard, group, context, request, promise, member_id, now_ms).decide()


@dataclass(frozen=True, slots=True)
class ClassicJoinAppend:
    """The append of a join in a consumer group; where it fails, the caller answers."""

    shard: ShardState
    promise: JoinPromise
    response: JoinGroupResponse
    group_id: str
    timers: tuple[tuple[MemberSession | ClassicMemberSync, int], ...]
    """Those of a member that is still in a consumer group, with their milliseconds."""

    def completed(self, _: int) -> None:
        """Answer, and expect a sync of the member."""
        outbox = self.shard.outbox
        outbox.cancel_timer(member_join_key(self.group_id, self.response.member_id))
        for timeout, delay_ms in self.timers:
            outbox.set_timer(timeout, delay_ms, is_retried=True)
        outbox.answer_join(self.promise, self.response)

    def failed(self, _: ErrorCode, __: int) -> None:
        """Do nothing."""


@dataclass(slots=True)
class ClassicJoin:
    """One JoinGroup request of a member with an id; `records` grow as it is decided on."""

    shard: ShardState
    group: ConsumerGroup
    context: RequestContext
    request: JoinGroupRequest
    promise: JoinPromise
    member_id: str
    """That of the request, or a new one."""
    now_ms: int
    records: list[CoordinatorRecord] = field(default_factory=list[CoordinatorRecord])

    def decide(self) -> Decision:
        """Return the records, and the answer that follows on them."""
        before, replaced = self._member()
        existing = self.group.static_member(self.request.group_instance_id)
        subscription = self._subscription()
        subscribing = SubscribingMembers(
            self.group, before, self._with_request(before, subscription), replaced
        )
        update = self._update(subscribing, subscription)
        regex_change = update.change_subscription()
        is_bumped = update.has_new_names or regex_change.is_updated
        subscriptions = update.subscriptions(is_bumped=is_bumped)
        if existing is None or not is_downgraded_by_replacement(self.shard, self.group, existing):
            target = update.target(subscriptions)
            member = update.reconcile(target, has_new_subscription=is_bumped)
            return self._decision(member, is_downgraded=False)
        member = subscribing.member
        is_stale = self.group.epochs().assignment_epoch < subscriptions.group_epoch
        if not is_stale:
            member = update.reconcile(update.present_target(), has_new_subscription=is_bumped)
        self.records += downgrade_by_replacement(
            self.shard, self.group, existing, member, self.now_ms, is_stale=is_stale
        )
        return self._decision(member, is_downgraded=True)

    def _member(self) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
        """Return the member as it was, and the static one that it takes the place of."""
        group, instance_id = self.group, self.request.group_instance_id
        if instance_id is None:
            return group.member_or_new(self.member_id), None
        if self.request.member_id != UNKNOWN_MEMBER_ID:
            return static_member(group, instance_id, self.member_id), None
        existing = group.static_member(instance_id)
        if existing is None:
            return group.member_or_new(self.member_id), None
        member = successor(existing, self.member_id)
        self.records += replacement_records(group, existing, member)
        return member, existing

    def _subscription(self) -> ConsumerProtocolSubscription:
        """Return the subscription of the first protocol: clients send the same with all of them."""
        try:
            return subscription_of(bytes(self.request.protocols[0].metadata))
        except MalformedProtocolError as error:
            raise RequestError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                "Malformed embedded consumer protocol in subscription deserialization.",
            ) from error

    def _with_request(
        self, member: ConsumerGroupMember, subscription: ConsumerProtocolSubscription
    ) -> ConsumerGroupMember:
        """Return the member with what the request says of it.

        A member of the classic protocol has no regular expression, also one that took the place of
        a member that had one (KAFKA-19720).
        """
        request = self.request
        timeout_ms = rebalance_timeout_ms(self.context.version, request)
        return replace(
            member,
            instance_id=request.group_instance_id or member.instance_id,
            rack_id=subscription.rack_id or member.rack_id,
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if timeout_ms == NO_REBALANCE_TIMEOUT else timeout_ms
            ),
            subscribed_topic_names=OrderedSet(names_in_order(subscription.topics)),
            subscribed_topic_regex=NO_REGEX,
            client_id=self.context.client_id,
            client_host=self.context.client_host,
            classic_metadata=ClassicMemberMetadata(
                request.session_timeout_ms, supported_protocols(request)
            ),
        )

    def _update(
        self, subscribing: SubscribingMembers, subscription: ConsumerProtocolSubscription
    ) -> MemberUpdate:
        ids = self.shard.image.topics.ids
        owned = owned_of(
            [
                (ids[one.topic], one.partitions)
                for one in subscription.owned_partitions
                if one.topic in ids
            ]
        )
        return MemberUpdate(self.shard, self.context, subscribing, owned, self.now_ms, self.records)

    def _decision(self, member: ConsumerGroupMember, *, is_downgraded: bool) -> Decision:
        request, group_id = self.request, self.group.group_id
        response = JoinGroupResponse(
            member_id=member.member_id,
            generation_id=member.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )
        timers: tuple[tuple[MemberSession | ClassicMemberSync, int], ...] = (
            (MemberSession(group_id, member.member_id), request.session_timeout_ms),
            (
                ClassicMemberSync(group_id, member.member_id),
                rebalance_timeout_ms(self.context.version, request),
            ),
        )
        append = ClassicJoinAppend(
            self.shard, self.promise, response, group_id, () if is_downgraded else timers
        )
        return Decision(tuple(self.records), append, replay_records=not is_downgraded)

"""SyncGroup and Heartbeat of classic members in a consumer group."""

from dataclasses import dataclass

from kvorum.groups.classic_group.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedProtocolError,
    assignment_bytes,
    embedded_version,
)
from kvorum.groups.consumer.membership import static_member
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import ClassicMemberMetadata, ConsumerGroupMember
from kvorum.groups.decision import Decision
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.groups.promises import SyncPromise
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import ClassicMemberJoin, MemberSession, member_sync_key
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@dataclass(frozen=True, slots=True)
class ClassicSyncAppend:
    """The end of what was written before a sync; where it fails, the caller answers."""

    shard: ShardState
    group_id: str
    member: ConsumerGroupMember
    classic: ClassicMemberMetadata
    request: SyncGroupRequest
    promise: SyncPromise

    def completed(self, _: int) -> None:
        """Give the member its assignment, in the version of its subscription.

        A member whose bytes cannot be read gets no answer, as in Kafka.
        """
        shard, member_id = self.shard, self.member.member_id
        shard.outbox.cancel_timer(member_sync_key(self.group_id, member_id))
        session = MemberSession(self.group_id, member_id)
        shard.outbox.set_timer(session, self.classic.session_timeout_ms, is_retried=True)
        try:
            version = embedded_version(self.classic.supported_protocols[0].metadata)
            assignment = assignment_bytes(self.member.assigned, shard.image.topics, version)
        except MalformedProtocolError:
            return
        response = SyncGroupResponse(
            protocol_type=self.request.protocol_type,
            protocol_name=self.request.protocol_name,
            assignment=assignment,
        )
        shard.outbox.answer(self.promise, response)

    def failed(self, _: ErrorCode, __: int) -> None:
        """Do nothing."""


def sync_with_consumer_group(
    shard: ShardState, group: ConsumerGroup, request: SyncGroupRequest, promise: SyncPromise
) -> Decision:
    """Have a member take its assignment once all is committed that was written before.

    Raises REBALANCE_IN_PROGRESS for a member that has to join again for a newer target.
    """
    member, classic = _classic_member(group, request)
    _check_protocol(classic, request)
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    if group.epochs().assignment_epoch > member.member_epoch and not is_revoking:
        _expect_join(shard, group, member)
        raise RequestError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"A new rebalance is triggered in group {group.group_id} and member "
            f"{member.member_id} should rejoin to catch up.",
        )
    append = ClassicSyncAppend(shard, group.group_id, member, classic, request, promise)
    return Decision(append=append)


def heartbeat_in_consumer_group(
    shard: ShardState, group: ConsumerGroup, request: HeartbeatRequest
) -> HeartbeatResponse:
    """Keep a member's session; answer one that has to give up or may take over to join again."""
    member, classic = _classic_member(group, request)
    session = MemberSession(group.group_id, member.member_id)
    shard.outbox.set_timer(session, classic.session_timeout_ms, is_retried=True)
    is_behind = member.member_epoch < group.epochs().assignment_epoch
    if not is_behind and not _may_step(group, member):
        return HeartbeatResponse()
    _expect_join(shard, group, member)
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def _may_step(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Return whether a join would bring the member further at its epoch."""
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return not group.awaits_release(member)
    return member.state is MemberState.UNREVOKED_PARTITIONS


def _classic_member(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
    """Return the member that a request is of; its epoch is the generation that it knows."""
    if request.group_instance_id is None:
        member = group.member(request.member_id)
    else:
        member = static_member(group, request.group_instance_id, request.member_id)
    if member.classic_metadata is None:
        raise RequestError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member.member_id} does not use the classic protocol.",
        )
    if request.generation_id != member.member_epoch:
        raise RequestError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {request.generation_id} is not equal to the member epoch "
            f"{member.member_epoch} of member {member.member_id}.",
        )
    return member, member.classic_metadata


def _check_protocol(classic: ClassicMemberMetadata, request: SyncGroupRequest) -> None:
    """Refuse another protocol than the one that the member's join was answered with."""
    own = classic.supported_protocols[0].name
    has_other_type = request.protocol_type not in {None, CONSUMER_PROTOCOL_TYPE}
    if has_other_type or request.protocol_name not in {None, own}:
        raise RequestError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _expect_join(shard: ShardState, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Give a member the time of a rebalance to join, from the first answer that asks it to."""
    timeout = ClassicMemberJoin(group.group_id, member.member_id)
    shard.outbox.set_timer_if_absent(timeout, member.rebalance_timeout_ms)

"""Heartbeat and LeaveGroup on classic groups, and DescribeGroups: what is committed."""

from typing import Final

from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupState
from kvorum.groups.decision import NO_DECISION, Decision
from kvorum.groups.shard_state import ShardState
from kvorum.groups.timeouts import heartbeat_key
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

_FIRST_VERSION_WITH_NOT_FOUND: Final = 6


def heartbeat(shard: ShardState, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
    """Keep a member's session; refuse strangers and members of other generations."""
    group = shard.find_classic_group(request.group_id)
    if group is None:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} not found.")
    if group.is_in(ClassicGroupState.DEAD):
        raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = group.validated_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise RequestError(ErrorCode.ILLEGAL_GENERATION)
    if group.is_empty:
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    Rebalance(shard, now_ms).reschedule_heartbeat(group, member)
    is_preparing = group.is_in(ClassicGroupState.PREPARING_REBALANCE)
    error = ErrorCode.REBALANCE_IN_PROGRESS if is_preparing else ErrorCode.NONE
    return HeartbeatResponse(error_code=error)


def leave_group(
    shard: ShardState, request: LeaveGroupRequest, now_ms: int
) -> tuple[Decision, LeaveGroupResponse]:
    """Remove members; if one of them was there, the group rebalances."""
    group = shard.find_classic_group(request.group_id)
    if group is None:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {request.group_id} not found.")
    if group.is_in(ClassicGroupState.DEAD):
        return NO_DECISION, LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    rebalance = Rebalance(shard, now_ms)
    responses = [_leave(rebalance, group, member) for member in request.members]
    decision = NO_DECISION
    if any(one.error_code == ErrorCode.NONE for one in responses):
        if group.is_in(ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
            decision = rebalance.maybe_prepare_or_complete_join(group)
        elif group.is_in(ClassicGroupState.PREPARING_REBALANCE):
            decision = rebalance.maybe_complete_join(group)
    return decision, LeaveGroupResponse(members=responses)


def _leave(
    rebalance: Rebalance, group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity
) -> LeaveGroupResponse.MemberResponse:
    try:
        _remove(rebalance, group, identity)
        error = ErrorCode.NONE
    except RequestError as refusal:
        error = refusal.code
    return LeaveGroupResponse.MemberResponse(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error
    )


def _remove(
    rebalance: Rebalance, group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity
) -> None:
    member_id = identity.member_id
    if not member_id:
        # An operator removes a static member, whose id need not be known (KIP-345).
        known = group.static_members.get(identity.group_instance_id or "")
        if identity.group_instance_id is None or known is None:
            raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
        member_id = known
    elif member_id in group.pending_join_members:
        group.remove(member_id)
        rebalance.shard.outbox.cancel_timer(heartbeat_key(group.group_id, member_id))
        return
    member = group.validated_member(member_id, identity.group_instance_id)
    rebalance.shard.outbox.cancel_timer(heartbeat_key(group.group_id, member_id))
    rebalance.remove_member(group, member)


def describe_group(
    shard: ShardState, version: int, group_id: str
) -> DescribeGroupsResponse.DescribedGroup:
    """Describe a group; metadata and the protocol are only shown of a stable one.

    Fields of a committed group are the newest ones, as in Kafka.
    """
    try:
        group = shard.classic_group(group_id, shard.timeline.committed_offset)
    except RequestError as error:
        dead = DescribeGroupsResponse.DescribedGroup(
            group_id=group_id, group_state=ClassicGroupState.DEAD.value
        )
        if version >= _FIRST_VERSION_WITH_NOT_FOUND:
            dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            dead.error_message = error.message
        return dead
    protocol = group.protocol_name if group.is_in(ClassicGroupState.STABLE) else None
    return DescribeGroupsResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[member.describe(protocol) for member in group.members.values()],
    )

"""LeaveGroup on a consumer group: classic members leave, and operators remove members."""

from kvorum.groups.consumer.fencing import remove_members
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.decision import NO_DECISION, Decision
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def leave_consumer_group(
    shard: ShardState, group: ConsumerGroup, request: LeaveGroupRequest, now_ms: int
) -> tuple[Decision, LeaveGroupResponse]:
    """Remove those members that there are, in one epoch, and answer for each."""
    gone: dict[str, ConsumerGroupMember] = {}
    responses: list[LeaveGroupResponse.MemberResponse] = []
    for identity in request.members:
        try:
            member = _leaving_member(group, identity)
            gone[member.member_id] = member
            error = ErrorCode.NONE
        except RequestError as refusal:
            error = refusal.code
        responses.append(
            LeaveGroupResponse.MemberResponse(
                member_id=identity.member_id,
                group_instance_id=identity.group_instance_id,
                error_code=error,
            )
        )
    decision = remove_members(shard, group, list(gone.values()), now_ms) if gone else NO_DECISION
    return decision, LeaveGroupResponse(members=responses)


def _leaving_member(
    group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity
) -> ConsumerGroupMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    existing = group.static_member(identity.group_instance_id)
    if existing is None:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
    # Without a member id an operator removes the member that has the instance id (KIP-345).
    if identity.member_id not in {"", existing.member_id}:
        raise RequestError(ErrorCode.FENCED_INSTANCE_ID)
    return existing

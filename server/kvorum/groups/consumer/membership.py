"""The members that requests name: of a consumer group, by member id and instance id."""

from dataclasses import replace
from uuid import UUID

from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.modern_group.member_state import JOIN_EPOCH
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_text import uuid_to_text


def new_member_id(shard: ShardState) -> str:
    """Return a new id: 22 characters, the first of which is not a dash (Kafka's Uuid)."""
    while (text := uuid_to_text(UUID(shard.new_uuid()).bytes)).startswith("-"):
        pass
    return text


def demand_room(
    shard: ShardState, group: ConsumerGroup, member_id: str, instance_id: str | None
) -> None:
    """Refuse a new member of a full group with GROUP_MAX_SIZE_REACHED."""
    size_max = shard.settings.consumer.max_size
    is_known = (
        group.members.get(member_id) is not None or group.static_member(instance_id) is not None
    )
    if group.member_count >= size_max and not is_known:
        raise RequestError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerGroupMember:
    """Return a static member; refuses an unknown instance, and another member's id as fenced."""
    existing = group.static_member(instance_id)
    if existing is None:
        raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if existing.member_id != member_id:
        raise RequestError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{existing.member_id}.",
        )
    return existing


def successor(existing: ConsumerGroupMember, member_id: str) -> ConsumerGroupMember:
    """Return a static member as it comes back under another id."""
    return replace(
        existing,
        member_id=member_id,
        member_epoch=JOIN_EPOCH,
        previous_member_epoch=JOIN_EPOCH,
    )

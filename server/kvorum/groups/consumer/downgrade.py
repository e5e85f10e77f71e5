"""The online downgrade of a consumer group to a classic group (KIP-848).

It comes when no member of the consumer protocol is left: the last one has left, has been fenced, or
has come back as a static member of the classic protocol.
"""

from collections.abc import Collection

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.classic.rebalance import Rebalance
from kvorum.groups.classic_group.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedProtocolError,
    assignment_bytes,
    embedded_version,
)
from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupMember, ClassicGroupState
from kvorum.groups.classic_group.group_records import new_group_record
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.consumer_group.group_records import group_tombstones
from kvorum.groups.consumer_group.member import ConsumerGroupMember
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode


def is_downgraded_without(
    shard: ShardState, group: ConsumerGroup, gone: Collection[ConsumerGroupMember]
) -> bool:
    """Return whether a group becomes a classic one when it loses members for good."""
    remaining_count = group.member_count - len(gone)
    return (
        remaining_count > 0
        and group.uses_classic_protocol_without(gone)
        and _is_allowed(shard, remaining_count)
    )


def is_downgraded_by_replacement(
    shard: ShardState, group: ConsumerGroup, replaced: ConsumerGroupMember
) -> bool:
    """Return whether a group becomes a classic one when a classic member replaces a static one."""
    return (
        not replaced.uses_classic_protocol
        and group.uses_classic_protocol_without([replaced])
        and _is_allowed(shard, group.member_count)
    )


def downgrade_without(
    shard: ShardState,
    group: ConsumerGroup,
    gone: Collection[ConsumerGroupMember],
    now_ms: int,
) -> list[CoordinatorRecord]:
    """Have a group be classic without some members, and rebalance; return the records of it.

    Raises GROUP_ID_NOT_FOUND, and leaves the group as it was, for a classic member whose bytes
    cannot be read. Timers of the consumer group go on: they find no such group any more.
    """
    gone_ids = {member.member_id for member in gone}
    members = [one for one in group.members_in_order() if one.member_id not in gone_ids]
    classic = _classic_group(shard, group, members, {}, now_ms)
    records = [*group_tombstones(group), _record(classic)]
    _take_place(shard, classic, now_ms)
    Rebalance(shard, now_ms).prepare(classic)
    return records


def downgrade_by_replacement(
    shard: ShardState,
    group: ConsumerGroup,
    replaced: ConsumerGroupMember,
    member: ConsumerGroupMember,
    now_ms: int,
    *,
    is_stale: bool,
) -> list[CoordinatorRecord]:
    """Have a group be classic with a classic member in the place of a static one.

    The other members go on without a rebalance unless the target `is_stale`. Raises
    GROUP_ID_NOT_FOUND as `downgrade_without` does.
    """
    members = [one for one in group.members_in_order() if one.member_id != replaced.member_id]
    old_ids = {member.member_id: replaced.member_id}
    classic = _classic_group(shard, group, [*members, member], old_ids, now_ms)
    new_ids = {replaced.member_id: member.member_id}
    records = [*group_tombstones(group, new_ids), _record(classic)]
    _take_place(shard, classic, now_ms)
    if is_stale:
        Rebalance(shard, now_ms).prepare(classic)
    return records


def _is_allowed(shard: ShardState, size: int) -> bool:
    settings = shard.settings
    return settings.consumer.migration_policy.allows_downgrade and size <= settings.group_max_size


def _classic_group(
    shard: ShardState,
    group: ConsumerGroup,
    members: Collection[ConsumerGroupMember],
    old_ids: dict[str, str],
    now_ms: int,
) -> ClassicGroup:
    """Return the stable group of these members, each of which has its target."""
    classic = ClassicGroup(
        group_id=group.group_id,
        state=ClassicGroupState.STABLE,
        current_state_timestamp=now_ms,
        generation_id=group.epochs().group_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
    )
    for member in members:
        classic.add(_classic_member(member))
    classic.protocol_name = classic.select_protocol()
    classic.refresh_subscribed_topics()
    topics = shard.image.topics
    for classic_member in classic.members.values():
        member_id = old_ids.get(classic_member.member_id, classic_member.member_id)
        target = group.target_assignment.get(member_id) or {}
        try:
            version = embedded_version(classic_member.metadata(classic.protocol_name))
            classic_member.assignment = assignment_bytes(target, topics, version)
        except MalformedProtocolError as error:
            raise RequestError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot downgrade the classic group {group.group_id}: {error}.",
            ) from error
    return classic


def _classic_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    classic = member.classic_metadata
    assert classic is not None
    return ClassicGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        supported_protocols=classic.supported_protocols,
    )


def _record(classic: ClassicGroup) -> CoordinatorRecord:
    assignment = {member.member_id: member.assignment for member in classic.members.values()}
    return new_group_record(classic, assignment)


def _take_place(shard: ShardState, classic: ClassicGroup, now_ms: int) -> None:
    """Put the classic group in the place of the consumer group, and begin its members' sessions."""
    shard.groups.set(classic.group_id, classic)
    rebalance = Rebalance(shard, now_ms)
    for member in classic.members.values():
        rebalance.reschedule_heartbeat(classic, member)

"""Classic groups as records, and records as classic groups."""

from collections.abc import Mapping

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.classic_group.group import ClassicGroup, ClassicGroupMember, ClassicGroupState
from kvorum.groups.classic_group.supported_protocol import SupportedProtocol
from kvorum.groups.records import group_metadata_record
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue

NO_TIMESTAMP = -1
NO_TIMEOUT = -1


def new_group_record(group: ClassicGroup, assignment: Mapping[str, bytes]) -> CoordinatorRecord:
    """Return the record of a group; `assignment` has the bytes of each member."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=_timestamp(group),
        members=[
            _member_metadata(member, group.protocol_name, assignment[member.member_id])
            for member in group.members.values()
        ],
    )
    return group_metadata_record(group.group_id, value)


def new_empty_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """Return the record by which a group begins."""
    value = GroupMetadataValue(
        protocol=None, leader=None, current_state_timestamp=_timestamp(group)
    )
    return group_metadata_record(group.group_id, value)


def group_of_record(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group that a record of any version is about."""
    stamp = value.current_state_timestamp
    group = ClassicGroup(
        group_id=group_id,
        state=ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY,
        current_state_timestamp=None if stamp == NO_TIMESTAMP else stamp,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
    )
    for member in value.members:
        group.add(_member_of(member, value))
    group.refresh_subscribed_topics()
    return group


def _timestamp(group: ClassicGroup) -> int:
    stamp = group.current_state_timestamp
    return NO_TIMESTAMP if stamp is None else stamp


def _member_metadata(
    member: ClassicGroupMember, protocol: str | None, assignment: bytes
) -> GroupMetadataValue.MemberMetadata:
    return GroupMetadataValue.MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol),
        assignment=assignment,
    )


def _member_of(
    member: GroupMetadataValue.MemberMetadata, value: GroupMetadataValue
) -> ClassicGroupMember:
    rebalance_timeout = member.rebalance_timeout
    return ClassicGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        # Version 0 has none.
        rebalance_timeout_ms=(
            member.session_timeout if rebalance_timeout == NO_TIMEOUT else rebalance_timeout
        ),
        session_timeout_ms=member.session_timeout,
        protocol_type=value.protocol_type,
        supported_protocols=(SupportedProtocol(value.protocol or "", member.subscription),),
        assignment=member.assignment,
    )

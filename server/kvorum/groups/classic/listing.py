"""DescribeGroups and ListGroups: what is committed of groups."""

from collections.abc import Iterable
from typing import Final

from kvorum.groups.classic_group.state import ClassicGroupState
from kvorum.groups.shard_state import ShardState
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse
from kvorum.wire.messages.list_groups import ListGroupsResponse

CLASSIC: Final = "classic"
_FIRST_VERSION_WITH_NOT_FOUND: Final = 6


def describe_group(
    shard: ShardState, version: int, group_id: str
) -> DescribeGroupsResponse.DescribedGroup:
    """Describe a group; metadata and the protocol are only shown of a stable one.

    Fields of a committed group are the newest ones, as in Kafka.
    """
    try:
        group = shard.group(group_id, shard.timeline.committed_offset)
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


def list_groups(
    shard: ShardState, states: Iterable[str], types: Iterable[str]
) -> list[ListGroupsResponse.ListedGroup]:
    """List groups in one of the states and of one of the types; without any, all of them."""
    wanted_states = {state.lower().strip() for state in states}
    wanted_types = {kind.lower() for kind in types}
    if wanted_types and CLASSIC not in wanted_types:
        return []
    return [
        ListGroupsResponse.ListedGroup(
            group_id=group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
        for group_id, group in shard.groups.items(shard.timeline.committed_offset)
        if not wanted_states or group.state.value.lower() in wanted_states
    ]

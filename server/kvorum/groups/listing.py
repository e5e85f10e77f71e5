"""ListGroups: the committed groups of all protocols."""

from collections.abc import Iterable
from typing import Final

from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.shard_state import Group, ShardState
from kvorum.wire.messages.list_groups import ListGroupsResponse

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""The type of a consumer group, and the protocol type of consumers."""
SHARE: Final = "share"
"""The type and the protocol type of a share group."""


def list_groups(
    shard: ShardState, states: Iterable[str], types: Iterable[str]
) -> list[ListGroupsResponse.ListedGroup]:
    """List groups in one of the states and of one of the types; without any, all of them."""
    wanted_states = {state.lower().strip() for state in states}
    wanted_types = {kind.lower() for kind in types}
    listed = _all(shard)
    return [
        one
        for one in listed
        if (not wanted_states or one.group_state.lower() in wanted_states)
        and (not wanted_types or one.group_type in wanted_types)
    ]


def _all(shard: ShardState) -> list[ListGroupsResponse.ListedGroup]:
    committed = shard.timeline.committed_offset
    return [
        _listed(group_id, group, committed) for group_id, group in shard.groups.items(committed)
    ]


def _listed(group_id: str, group: Group, committed: int) -> ListGroupsResponse.ListedGroup:
    if isinstance(group, ClassicGroup):
        return ListGroupsResponse.ListedGroup(
            group_id=group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC,
        )
    kind = CONSUMER if isinstance(group, ConsumerGroup) else SHARE
    return ListGroupsResponse.ListedGroup(
        group_id=group_id,
        protocol_type=kind,
        group_state=group.state(committed).value,
        group_type=kind,
    )

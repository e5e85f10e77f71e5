"""The effects of records of share groups (GroupMetadataManager's replay of KIP-932's records)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.groups.modern_group.replay import (
    replay_group_epoch,
    replay_target,
    replay_target_metadata,
)
from kvorum.groups.shard_state import ShardState
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.state_partitions import StatePartitions, StateTopic
from kvorum.wire.messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from kvorum.wire.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from kvorum.wire.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kvorum.wire.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kvorum.wire.messages.share_group_metadata_key import ShareGroupMetadataKey
from kvorum.wire.messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from kvorum.wire.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
)
from kvorum.wire.messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from kvorum.wire.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from kvorum.wire.primitives import Message


def replay_share_group_record(shard: ShardState, record: CoordinatorRecord, now_ms: int) -> None:
    """Apply a record of a share group; the end of something that is not there does nothing."""
    key: Any = record.key
    found = shard.find_share_group(key.group_id)
    if isinstance(key, ShareGroupStatePartitionMetadataKey):
        _state_partitions(shard, key, record.value, now_ms)
        return
    if record.value is None and found is None:
        return
    if record.value is None and isinstance(key, ShareGroupMetadataKey):
        shard.groups.remove(key.group_id)
        return
    group = found or shard.get_or_create_share_group(key.group_id)
    _REPLAYS[type(key)](group, key, record.value)


def _state_partitions(
    shard: ShardState, key: ShareGroupStatePartitionMetadataKey, value: Any, now_ms: int
) -> None:
    if value is None:
        shard.share_state_partitions.remove(key.group_id)
        return
    shard.get_or_create_share_group(key.group_id)
    state = StatePartitions(
        initializing=_state_topics(value.initializing_topics, now_ms),
        initialized=_state_topics(value.initialized_topics, now_ms),
        deleting=frozenset(topic.topic_id for topic in value.deleting_topics),
    )
    shard.share_state_partitions.set(key.group_id, state)


def _state_topics(
    topics: Iterable[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo], now_ms: int
) -> dict[bytes, StateTopic]:
    """Return topics as of now: a partition that waits for its state may wait its full time."""
    return {
        topic.topic_id: StateTopic(topic.topic_name, frozenset(topic.partitions), now_ms)
        for topic in topics
    }


def _member(
    group: ShareGroup,
    key: ShareGroupMemberMetadataKey,
    value: ShareGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    group.set_member(
        replace(
            group.member_or_new(key.member_id),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=OrderedSet(names_in_order(value.subscribed_topic_names)),
        )
    )


def _current(
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> None:
    if value is None:
        group.end_current_assignment(key.member_id)
        return
    group.set_member(
        replace(
            group.member_or_new(key.member_id),
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned={
                one.topic_id: OrderedSet(one.partitions) for one in value.assigned_partitions
            },
        )
    )


SHARE_GROUP_KEYS: Final = (
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupStatePartitionMetadataKey,
)
"""The keys of all records of share groups."""
_REPLAYS: Final[Mapping[type[Message], Callable[[ShareGroup, Any, Any], None]]] = MappingProxyType(
    {
        ShareGroupMetadataKey: replay_group_epoch,
        ShareGroupMemberMetadataKey: _member,
        ShareGroupTargetAssignmentMetadataKey: replay_target_metadata,
        ShareGroupTargetAssignmentMemberKey: replay_target,
        ShareGroupCurrentMemberAssignmentKey: _current,
    }
)

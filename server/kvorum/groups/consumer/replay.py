"""The records of consumer groups, applied to the groups of a shard."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.consumer_group.group import NO_ASSIGNMENT_EPOCH, ConsumerGroup
from kvorum.groups.consumer_group.group_records import (
    replay_current_assignment,
    replay_member,
    replay_regex,
    replay_target_assignment,
)
from kvorum.groups.shard_state import ShardState
from kvorum.wire.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kvorum.wire.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kvorum.wire.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kvorum.wire.messages.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue,
)
from kvorum.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kvorum.wire.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kvorum.wire.messages.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey,
)
from kvorum.wire.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
)
from kvorum.wire.messages.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey,
)
from kvorum.wire.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from kvorum.wire.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from kvorum.wire.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kvorum.wire.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kvorum.wire.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kvorum.wire.primitives import Message


def replay_consumer_group_record(shard: ShardState, record: CoordinatorRecord) -> None:
    """Apply a record of a consumer group; the end of something that is not there does nothing."""
    key: Any = record.key
    is_end = record.value is None
    found = shard.find_consumer_group(key.group_id)
    if is_end and found is None:
        return
    if is_end and isinstance(key, ConsumerGroupMetadataKey):
        shard.groups.remove(key.group_id)
        return
    group = found or shard.get_or_create_consumer_group(key.group_id)
    _REPLAYS[type(key)](group, key, record.value)


def _group_epoch(
    group: ConsumerGroup, _: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue
) -> None:
    group.set_group_epoch(value.epoch, value.metadata_hash)


def _partition_metadata(
    group: ConsumerGroup,
    _: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.set_partition_metadata(is_there=value is not None)


def _target_metadata(
    group: ConsumerGroup,
    _: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is None:
        group.set_assignment_epoch(NO_ASSIGNMENT_EPOCH, 0)
    else:
        group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)


def _member(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    replay_member(group, key.member_id, value)


def _target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    replay_target_assignment(group, key.member_id, value)


def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    replay_current_assignment(group, key.member_id, value)


def _regex(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    replay_regex(group, key.regular_expression, value)


_REPLAYS: Final[Mapping[type[Message], Callable[[ConsumerGroup, Any, Any], None]]] = (
    MappingProxyType(
        {
            ConsumerGroupMetadataKey: _group_epoch,
            ConsumerGroupPartitionMetadataKey: _partition_metadata,
            ConsumerGroupMemberMetadataKey: _member,
            ConsumerGroupTargetAssignmentMetadataKey: _target_metadata,
            ConsumerGroupTargetAssignmentMemberKey: _target,
            ConsumerGroupCurrentMemberAssignmentKey: _current,
            ConsumerGroupRegularExpressionKey: _regex,
        }
    )
)

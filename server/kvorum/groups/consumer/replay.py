"""The records of consumer groups, applied to the groups of a shard."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.name_order import names_in_order
from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.classic_group.supported_protocol import SupportedProtocol
from kvorum.groups.consumer_group.group import ConsumerGroup, ResolvedRegularExpression
from kvorum.groups.consumer_group.member import NO_REGEX, ClassicMemberMetadata, PartitionEpochs
from kvorum.groups.modern_group.member_state import MemberState
from kvorum.groups.modern_group.replay import (
    replay_group_epoch,
    replay_target,
    replay_target_metadata,
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
from kvorum.wire.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
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


def _partition_metadata(
    group: ConsumerGroup,
    _: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.set_partition_metadata(is_there=value is not None)


def _member(
    group: ConsumerGroup,
    key: ConsumerGroupMemberMetadataKey,
    value: ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    group.set_member(
        replace(
            group.member_or_new(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=OrderedSet(names_in_order(value.subscribed_topic_names)),
            subscribed_topic_regex=value.subscribed_topic_regex or NO_REGEX,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic_metadata=_classic_metadata(value.classic_member_metadata),
        )
    )


def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
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
            assigned=_partitions(value.assigned_partitions, value.member_epoch),
            pending_revocation=_partitions(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _regex(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.remove_resolved_regex(key.regular_expression)
        return
    resolved = ResolvedRegularExpression(
        OrderedSet(names_in_order(value.topics)), value.version, value.timestamp
    )
    group.set_resolved_regex(key.regular_expression, resolved)


_REPLAYS: Final[Mapping[type[Message], Callable[[ConsumerGroup, Any, Any], None]]] = (
    MappingProxyType(
        {
            ConsumerGroupMetadataKey: replay_group_epoch,
            ConsumerGroupPartitionMetadataKey: _partition_metadata,
            ConsumerGroupMemberMetadataKey: _member,
            ConsumerGroupTargetAssignmentMetadataKey: replay_target_metadata,
            ConsumerGroupTargetAssignmentMemberKey: replay_target,
            ConsumerGroupCurrentMemberAssignmentKey: _current,
            ConsumerGroupRegularExpressionKey: _regex,
        }
    )
)


def _classic_metadata(
    value: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None,
) -> ClassicMemberMetadata | None:
    if value is None:
        return None
    return ClassicMemberMetadata(
        value.session_timeout_ms,
        tuple(
            SupportedProtocol(one.name, bytes(one.metadata)) for one in value.supported_protocols
        ),
    )


def _partitions(
    topics: Iterable[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], member_epoch: int
) -> PartitionEpochs:
    """Return partitions with their epochs; earlier releases wrote none, and the member's counts."""
    partitions: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        partitions[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return partitions

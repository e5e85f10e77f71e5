"""The records that groups of the consumer and of the share protocol have alike, applied to them."""

from typing import Any

from kvorum.groups.assignors.ordered_set import OrderedSet
from kvorum.groups.modern_group.group import ModernGroup
from kvorum.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kvorum.wire.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
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
from kvorum.wire.messages.share_group_metadata_key import ShareGroupMetadataKey
from kvorum.wire.messages.share_group_metadata_value import ShareGroupMetadataValue
from kvorum.wire.messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from kvorum.wire.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from kvorum.wire.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from kvorum.wire.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)


def replay_group_epoch(
    group: ModernGroup[Any],
    _: ConsumerGroupMetadataKey | ShareGroupMetadataKey,
    value: ConsumerGroupMetadataValue | ShareGroupMetadataValue,
) -> None:
    """Set the epoch of a group and the hash of its topics."""
    group.set_group_epoch(value.epoch, value.metadata_hash)


def replay_target_metadata(
    group: ModernGroup[Any],
    _: ConsumerGroupTargetAssignmentMetadataKey | ShareGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | None,
) -> None:
    """Set the epoch and the time of a group's target assignment, or end it."""
    if value is None:
        group.end_target_assignment()
    else:
        group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)


def replay_target(
    group: ModernGroup[Any],
    key: ConsumerGroupTargetAssignmentMemberKey | ShareGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | ShareGroupTargetAssignmentMemberValue | None,
) -> None:
    """Set the target of a member, or end it."""
    if value is None:
        group.target_assignment.remove(key.member_id)
        return
    target = {one.topic_id: OrderedSet(one.partitions) for one in value.topic_partitions}
    group.target_assignment.set(key.member_id, target)

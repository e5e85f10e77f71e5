"""The records of a share group (GroupCoordinatorRecordHelpers)."""

from collections.abc import Mapping

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.share_group.group import ShareGroup
from kvorum.groups.share_group.member import ShareGroupMember
from kvorum.groups.share_group.state_partitions import StateTopics
from kvorum.wire.messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from kvorum.wire.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from kvorum.wire.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kvorum.wire.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kvorum.wire.messages.share_group_metadata_key import ShareGroupMetadataKey
from kvorum.wire.messages.share_group_metadata_value import ShareGroupMetadataValue
from kvorum.wire.messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from kvorum.wire.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
)
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

_TARGET_PARTITIONS = ShareGroupTargetAssignmentMemberValue.TopicPartition
_CURRENT_PARTITIONS = ShareGroupCurrentMemberAssignmentValue.TopicPartitions
_STATE_TOPIC = ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo
_DELETING_TOPIC = ShareGroupStatePartitionMetadataValue.TopicInfo


def member_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Return the record of what a member subscribes to, and of its client."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
    )
    return CoordinatorRecord(ShareGroupMemberMetadataKey(group_id, member.member_id), value)


def group_epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of a group's epoch, and of the topics at that epoch."""
    value = ShareGroupMetadataValue(group_epoch, metadata_hash)
    return CoordinatorRecord(ShareGroupMetadataKey(group_id), value)


def target_assignment_record(
    group_id: str, member_id: str, target: Assignment
) -> CoordinatorRecord:
    """Return the record of the partitions that a member is to have."""
    value = ShareGroupTargetAssignmentMemberValue(
        [_TARGET_PARTITIONS(topic_id, list(numbers)) for topic_id, numbers in target.items()]
    )
    return CoordinatorRecord(ShareGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_assignment_metadata_record(
    group_id: str, assignment_epoch: int, timestamp_ms: int
) -> CoordinatorRecord:
    """Return the record of the epoch of a target assignment, and of when it was computed."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch, timestamp_ms)
    return CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group_id), value)


def current_assignment_record(group_id: str, member: ShareGroupMember) -> CoordinatorRecord:
    """Return the record of what a member has."""
    assigned = member.assigned.items()
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=[
            _CURRENT_PARTITIONS(topic_id, list(numbers)) for topic_id, numbers in assigned
        ],
    )
    return CoordinatorRecord(
        ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), value
    )


def state_partitions_record(
    group_id: str,
    initializing: StateTopics,
    initialized: StateTopics,
    deleting: Mapping[bytes, str],
) -> CoordinatorRecord:
    """Return the record of the partitions with a state; `deleting` are names by topic id."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_state_topics(initializing),
        initialized_topics=_state_topics(initialized),
        deleting_topics=[_DELETING_TOPIC(topic_id, name) for topic_id, name in deleting.items()],
    )
    return CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the records that end a member, in Kafka's order."""
    return [
        CoordinatorRecord(ShareGroupCurrentMemberAssignmentKey(group_id, member_id)),
        CoordinatorRecord(ShareGroupTargetAssignmentMemberKey(group_id, member_id)),
        CoordinatorRecord(ShareGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_tombstones(group: ShareGroup) -> list[CoordinatorRecord]:
    """Return the records that end a group without members, in Kafka's order."""
    return [
        CoordinatorRecord(ShareGroupTargetAssignmentMetadataKey(group.group_id)),
        CoordinatorRecord(ShareGroupStatePartitionMetadataKey(group.group_id)),
        CoordinatorRecord(ShareGroupMetadataKey(group.group_id)),
    ]


def _state_topics(
    topics: StateTopics,
) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    return [
        _STATE_TOPIC(topic_id, topic.name, sorted(topic.partitions))
        for topic_id, topic in topics.items()
    ]

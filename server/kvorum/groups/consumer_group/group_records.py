"""The records of a consumer group (GroupCoordinatorRecordHelpers)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.assignors.partition_assignor import Assignment
from kvorum.groups.consumer_group.group import ConsumerGroup, ResolvedRegularExpression
from kvorum.groups.consumer_group.member import (
    ClassicMemberMetadata,
    ConsumerGroupMember,
    PartitionEpochs,
)
from kvorum.wire.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kvorum.wire.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
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

NO_NEW_MEMBER_IDS: Final[Mapping[str, str]] = MappingProxyType({})
_EpochsOfTopic = ConsumerGroupCurrentMemberAssignmentValueTopicPartitions
_CLASSIC_METADATA = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
_CLASSIC_PROTOCOL = ConsumerGroupMemberMetadataValue.ClassicProtocol


def member_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return the record of what a member subscribes to, and of its client."""
    classic = member.classic_metadata
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
    )
    # Set here: without it the constructor makes an empty one, as the schema has no null default.
    value.classic_member_metadata = None if classic is None else _classic_metadata_value(classic)
    return CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, member.member_id), value)


def group_epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Return the record of a group's epoch, and of the topics at that epoch."""
    value = ConsumerGroupMetadataValue(group_epoch, metadata_hash)
    return CoordinatorRecord(ConsumerGroupMetadataKey(group_id), value)


def target_assignment_record(
    group_id: str, member_id: str, target: Assignment
) -> CoordinatorRecord:
    """Return the record of the partitions that a member is to have."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        [
            ConsumerGroupTargetAssignmentMemberValue.TopicPartition(topic_id, list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), value)


def target_assignment_metadata_record(
    group_id: str, assignment_epoch: int, timestamp_ms: int
) -> CoordinatorRecord:
    """Return the record of the epoch of a target assignment, and of when it was computed."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch, timestamp_ms)
    return CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id), value)


def current_assignment_record(group_id: str, member: ConsumerGroupMember) -> CoordinatorRecord:
    """Return the record of what a member may own, and of what it has yet to give up."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_partitions_value(member.assigned),
        partitions_pending_revocation=_partitions_value(member.pending_revocation),
    )
    return CoordinatorRecord(
        ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id), value
    )


def regex_record(
    group_id: str, regex: str, resolved: ResolvedRegularExpression
) -> CoordinatorRecord:
    """Return the record of the topics that a regular expression matches."""
    value = ConsumerGroupRegularExpressionValue(
        sorted(resolved.topics), resolved.version, resolved.timestamp_ms
    )
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Return the record that ends a regular expression."""
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id, regex))


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that ends the topics' metadata, which earlier releases kept."""
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the records that end a member, in Kafka's order."""
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, member_id)),
    ]


def group_records(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """Return the records by which a group with members begins, in Kafka's order."""
    group_id, epochs, members = group.group_id, group.epochs(), group.members_in_order()
    records = [member_record(group_id, member) for member in members]
    records.append(group_epoch_record(group_id, epochs.group_epoch, epochs.metadata_hash))
    records += [
        target_assignment_record(
            group_id, member.member_id, group.target_assignment.get(member.member_id) or {}
        )
        for member in members
    ]
    records.append(
        target_assignment_metadata_record(
            group_id, epochs.assignment_epoch, epochs.assignment_timestamp_ms
        )
    )
    records += [current_assignment_record(group_id, member) for member in members]
    return records


def group_tombstones(
    group: ConsumerGroup, new_member_ids: Mapping[str, str] = NO_NEW_MEMBER_IDS
) -> list[CoordinatorRecord]:
    """Return the records that end a group, in Kafka's order.

    `new_member_ids` are those of static members that came back just before, by their old ids.
    """
    group_id = group.group_id
    member_ids = [
        new_member_ids.get(member.member_id, member.member_id) for member in group.members.values()
    ]
    records = [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id))
        for member_id in member_ids
    ]
    records += [
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))
        for member_id in member_ids
    ]
    records.append(CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id)))
    records += [
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id, member_id))
        for member_id in member_ids
    ]
    records += [regex_tombstone(group_id, regex) for regex, _ in group.resolved_regexes.items()]
    records.append(partition_metadata_tombstone(group_id))
    records.append(CoordinatorRecord(ConsumerGroupMetadataKey(group_id)))
    return records


def _classic_metadata_value(
    classic: ClassicMemberMetadata,
) -> ConsumerGroupMemberMetadataValue.ClassicMemberMetadata:
    protocols = [_CLASSIC_PROTOCOL(one.name, one.metadata) for one in classic.supported_protocols]
    return _CLASSIC_METADATA(classic.session_timeout_ms, protocols)


def _partitions_value(partitions: PartitionEpochs) -> list[_EpochsOfTopic]:
    return [
        _EpochsOfTopic(topic_id, list(by_partition), list(by_partition.values()))
        for topic_id, by_partition in partitions.items()
    ]

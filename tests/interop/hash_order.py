"""Sorts the arrays whose order comes from the hashes of Java, as HashOrder.java does."""

from itertools import groupby
from typing import Final, Protocol, TypeVar

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.groups.classic_group.consumer_protocol import (
    MalformedProtocolError,
    assignment_of,
    embedded_version,
)
from kvorum.wire.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
)
from kvorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kvorum.wire.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kvorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from kvorum.wire.messages.share_group_describe import ShareGroupDescribeResponse
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from kvorum.wire.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
)
from kvorum.wire.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)

_CurrentPartitions = ConsumerGroupCurrentMemberAssignmentValueTopicPartitions
_TYPE_DIGITS: Final = 4
_FIRST_TYPE_OF_GROUPS: Final = "0002"


class _Topic(Protocol):
    """A topic of a record or response, with partitions in an order of Java."""

    topic_id: bytes
    partitions: list[int]


_TopicT = TypeVar("_TopicT", bound=_Topic)


def record_text(record: CoordinatorRecord) -> str:
    """Return key and value as hexadecimal digits, with sorted arrays."""
    key, value = record.key_bytes(), record.value_bytes()
    if value is None:
        return f"{key.hex()}:~"
    # A copy is sorted: the message belongs to the shard.
    if isinstance(record.value, ConsumerGroupTargetAssignmentMemberValue):
        target = ConsumerGroupTargetAssignmentMemberValue.decode(value[2:], record.version)
        for one in target.topic_partitions:
            one.partitions.sort()
        target.topic_partitions.sort(key=lambda one: one.topic_id)
        value = value[:2] + target.encode(record.version)
    elif isinstance(record.value, ConsumerGroupCurrentMemberAssignmentValue):
        current = ConsumerGroupCurrentMemberAssignmentValue.decode(value[2:], record.version)
        _sort_with_epochs(current.assigned_partitions)
        _sort_with_epochs(current.partitions_pending_revocation)
        value = value[:2] + current.encode(record.version)
    elif isinstance(record.value, ShareGroupTargetAssignmentMemberValue):
        target_of_share = ShareGroupTargetAssignmentMemberValue.decode(value[2:], record.version)
        _sort_partitions(target_of_share.topic_partitions)
        value = value[:2] + target_of_share.encode(record.version)
    elif isinstance(record.value, ShareGroupCurrentMemberAssignmentValue):
        shared = ShareGroupCurrentMemberAssignmentValue.decode(value[2:], record.version)
        _sort_partitions(shared.assigned_partitions)
        value = value[:2] + shared.encode(record.version)
    elif isinstance(record.value, ShareGroupStatePartitionMetadataValue):
        state = ShareGroupStatePartitionMetadataValue.decode(value[2:], record.version)
        _sort_partitions(state.initializing_topics)
        _sort_partitions(state.initialized_topics)
        state.deleting_topics.sort(key=lambda one: one.topic_id)
        value = value[:2] + state.encode(record.version)
    elif isinstance(record.value, GroupMetadataValue):
        classic = GroupMetadataValue.decode(value[2:], record.version)
        for member in classic.members:
            member.assignment = sorted_assignment(member.assignment)
        value = value[:2] + classic.encode(record.version)
    return f"{key.hex()}:{value.hex()}"


def sorted_records(records: list[str], *, is_unordered: bool, has_runs: bool) -> list[str]:
    """Sort those of one group within the runs of one type: the order between is Kafka's."""
    is_of_one_group = has_runs and len({_group_digits(one) for one in records}) == 1
    if not is_of_one_group or min(records) < _FIRST_TYPE_OF_GROUPS:
        return sorted(records) if is_unordered else records
    runs = groupby(records, key=lambda one: one[:_TYPE_DIGITS])
    return [one for _, run in runs for one in sorted(run)]


def _group_digits(record: str) -> str:
    """Return the group id of a key, which follows the type: its length, and its bytes."""
    length = int(record[_TYPE_DIGITS : 2 * _TYPE_DIGITS], base=16)
    return record[_TYPE_DIGITS : 2 * (_TYPE_DIGITS + length)]


def sorted_assignment(data: bytes) -> bytes:
    """Sort within the bytes of a consumer's assignment; others stay as they are."""
    try:
        assignment = assignment_of(data)
        version = min(embedded_version(data), ConsumerProtocolAssignment.MAX_VERSION)
    except MalformedProtocolError:
        return data
    for one in assignment.assigned_partitions:
        one.partitions.sort()
    assignment.assigned_partitions.sort(key=lambda one: one.topic)
    written = version.to_bytes(2) + assignment.encode(version)
    return written if len(written) == len(data) else data


def sort_heartbeat(response: ConsumerGroupHeartbeatResponse) -> None:
    if response.assignment is not None:
        for one in response.assignment.topic_partitions:
            one.partitions.sort()
        response.assignment.topic_partitions.sort(key=lambda one: one.topic_id)


def sort_described(group: ConsumerGroupDescribeResponse.DescribedGroup) -> None:
    group.members.sort(key=lambda one: one.member_id)
    for member in group.members:
        member.subscribed_topic_names.sort()
        for assignment in (member.assignment, member.target_assignment):
            for one in assignment.topic_partitions:
                one.partitions.sort()
            assignment.topic_partitions.sort(key=lambda one: one.topic_id)


def sort_share_heartbeat(response: ShareGroupHeartbeatResponse) -> None:
    if response.assignment is not None:
        _sort_partitions(response.assignment.topic_partitions)


def sort_described_share_group(group: ShareGroupDescribeResponse.DescribedGroup) -> None:
    group.members.sort(key=lambda one: one.member_id)
    for member in group.members:
        member.subscribed_topic_names.sort()
        _sort_partitions(member.assignment.topic_partitions)


def _sort_partitions(topics: list[_TopicT]) -> None:
    for one in topics:
        one.partitions.sort()
    topics.sort(key=lambda one: one.topic_id)


def _sort_with_epochs(
    topics: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions],
) -> None:
    for one in topics:
        assert one.assignment_epochs is not None
        pairs = sorted(zip(one.partitions, one.assignment_epochs, strict=True))
        one.partitions = [partition for partition, _ in pairs]
        one.assignment_epochs = [epoch for _, epoch in pairs]
    topics.sort(key=lambda one: one.topic_id)

"""Sorts the arrays whose order comes from the hashes of Java, as HashOrder.java does."""

from itertools import groupby
from typing import Final

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

_CurrentPartitions = ConsumerGroupCurrentMemberAssignmentValueTopicPartitions
_TYPE_DIGITS: Final = 4
_FIRST_TYPE_OF_GROUPS: Final = "0002"


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


def _sort_with_epochs(
    topics: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions],
) -> None:
    for one in topics:
        assert one.assignment_epochs is not None
        pairs = sorted(zip(one.partitions, one.assignment_epochs, strict=True))
        one.partitions = [partition for partition, _ in pairs]
        one.assignment_epochs = [epoch for _, epoch in pairs]
    topics.sort(key=lambda one: one.topic_id)

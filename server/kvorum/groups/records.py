"""Records of ``__consumer_offsets`` as a shard makes and replays them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kvorum.coordinator.record import (
    KEY_VERSION,
    CoordinatorRecord,
    decoded,
    record_type,
    value_version,
)
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
from kvorum.wire.messages.group_metadata_key import GroupMetadataKey
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kvorum.wire.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
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
from kvorum.wire.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kvorum.wire.primitives import Message

GROUP_METADATA_VALUE_VERSION: Final = 3
OFFSET_COMMIT_VALUE_VERSION: Final = 4
EXPIRING_OFFSET_COMMIT_VALUE_VERSION: Final = 1
"""The only version with an expire timestamp; it has neither leader epoch nor topic id."""

_STREAMS_GROUP_METADATA: Final = StreamsGroupMetadataKey.API_KEY
"""The record that a streams group always has; its tombstone is the last record of the group."""
_STREAMS: Final = frozenset({_STREAMS_GROUP_METADATA, 19, 20, 21, 22, 23})
"""Records of streams groups; the keys of all begin with the group's id."""
_MESSAGES: Final[Mapping[int | None, tuple[type[Message], type[Message]]]] = MappingProxyType(
    {
        key.API_KEY: (key, value)
        for key, value in (
            (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
            (OffsetCommitKey, OffsetCommitValue),
            (GroupMetadataKey, GroupMetadataValue),
            (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
            (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
            (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
            (
                ConsumerGroupTargetAssignmentMetadataKey,
                ConsumerGroupTargetAssignmentMetadataValue,
            ),
            (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
            (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
            (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
            (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
            (ShareGroupMetadataKey, ShareGroupMetadataValue),
            (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
            (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
            (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
            (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
        )
    }
)
"""The messages of the records of all groups that are served, by the number of the type."""


@dataclass(frozen=True, slots=True)
class OtherGroupRecord:
    """A record of a streams group, with the group's id."""

    group_id: str
    ends_group: bool


def decode_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Return a record of the log; None for one that has to be skipped.

    Skipped are types that Kafka's reference release does not know, and those of streams groups
    (`decode_other_group_record`). Raises `DamagedRecordError` for bytes that cannot be read or a
    value of a later version.
    """
    type_id = record_type(key)
    messages = _MESSAGES.get(type_id)
    if messages is None:
        return None
    key_type, value_type = messages
    decoded_key = decoded(key_type, key, KEY_VERSION)
    if value is None:
        return CoordinatorRecord(decoded_key)
    version = value_version(value)
    return CoordinatorRecord(decoded_key, decoded(value_type, value, version), version)


def decode_other_group_record(key: bytes, value: bytes | None) -> OtherGroupRecord | None:
    """Return a record of a streams group; None for every other record.

    Tombstones that leave the group are among the others. Raises `DamagedRecordError` for a key
    that cannot be read.
    """
    type_id = record_type(key)
    is_end = value is None and type_id == _STREAMS_GROUP_METADATA
    if type_id not in _STREAMS or (value is None and not is_end):
        return None
    group_id = decoded(StreamsGroupMetadataKey, key, KEY_VERSION).group_id
    return OtherGroupRecord(group_id, ends_group=is_end)


def group_metadata_record(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    """Return the record of a group and its members."""
    return CoordinatorRecord(GroupMetadataKey(group_id), value, GROUP_METADATA_VALUE_VERSION)


def group_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the record that ends a group."""
    return CoordinatorRecord(GroupMetadataKey(group_id))


def offset_commit_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """Return the record that ends an offset, and those of open transactions for the same."""
    return CoordinatorRecord(OffsetCommitKey(group_id, topic, partition))

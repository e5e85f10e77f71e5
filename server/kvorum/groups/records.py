"""Records of ``__consumer_offsets`` as a shard makes and replays them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from kvorum.coordinator.record import (
    KEY_VERSION,
    CoordinatorRecord,
    decoded,
    record_type,
    value_version,
)
from kvorum.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kvorum.wire.messages.group_metadata_key import GroupMetadataKey
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kvorum.wire.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.share_group_metadata_key import ShareGroupMetadataKey
from kvorum.wire.messages.streams_group_metadata_key import StreamsGroupMetadataKey

GROUP_METADATA_VALUE_VERSION: Final = 3
OFFSET_COMMIT_VALUE_VERSION: Final = 4
EXPIRING_OFFSET_COMMIT_VALUE_VERSION: Final = 1
"""The only version with an expire timestamp; it has neither leader epoch nor topic id."""

GroupKey: TypeAlias = GroupMetadataKey | OffsetCommitKey | LegacyOffsetCommitKey
GroupValue: TypeAlias = GroupMetadataValue | OffsetCommitValue | LegacyOffsetCommitValue

_LEGACY_OFFSET_COMMIT: Final = 0
_OFFSET_COMMIT: Final = 1
_GROUP_METADATA: Final = 2
_KEYS: Final[Mapping[int, type[GroupKey]]] = MappingProxyType(
    {
        _LEGACY_OFFSET_COMMIT: LegacyOffsetCommitKey,
        _OFFSET_COMMIT: OffsetCommitKey,
        _GROUP_METADATA: GroupMetadataKey,
    }
)
_VALUES: Final[Mapping[int, type[GroupValue]]] = MappingProxyType(
    {
        _LEGACY_OFFSET_COMMIT: LegacyOffsetCommitValue,
        _OFFSET_COMMIT: OffsetCommitValue,
        _GROUP_METADATA: GroupMetadataValue,
    }
)
_GROUP_METADATA_OF_OTHER_PROTOCOLS: Final = frozenset(
    {
        ConsumerGroupMetadataKey.API_KEY,
        ShareGroupMetadataKey.API_KEY,
        StreamsGroupMetadataKey.API_KEY,
    }
)
"""The record that such a group always has; its tombstone is the last record of the group."""
_OTHER_PROTOCOLS: Final = _GROUP_METADATA_OF_OTHER_PROTOCOLS | {
    4, 5, 6, 7, 8, 10, 12, 13, 14, 15, 16, 19, 20, 21, 22, 23,
}  # fmt: skip
"""Records of consumer, share and streams groups; the keys of all begin with the group's id."""


@dataclass(frozen=True, slots=True)
class OtherGroupRecord:
    """A record of a group of another protocol than the classic one, with the group's id."""

    group_id: str
    ends_group: bool


def decode_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Return a record of the log; None for one that has to be skipped.

    Skipped are types that Kafka's reference release does not know, and those of groups of other
    protocols (`decode_other_group_record`). Raises `DamagedRecordError` for bytes that cannot
    be read or a value of a later version.
    """
    type_id = record_type(key)
    if type_id not in _KEYS:
        return None
    decoded_key = decoded(_KEYS[type_id], key, KEY_VERSION)
    if value is None:
        return CoordinatorRecord(decoded_key)
    version = value_version(value)
    return CoordinatorRecord(decoded_key, decoded(_VALUES[type_id], value, version), version)


def decode_other_group_record(key: bytes, value: bytes | None) -> OtherGroupRecord | None:
    """Return a record of a consumer, share or streams group; None for every other record.

    Tombstones that leave the group are among the others. Raises `DamagedRecordError` for a key
    that cannot be read.
    """
    type_id = record_type(key)
    is_end = value is None and type_id in _GROUP_METADATA_OF_OTHER_PROTOCOLS
    if type_id not in _OTHER_PROTOCOLS or (value is None and not is_end):
        return None
    group_id = decoded(ConsumerGroupMetadataKey, key, KEY_VERSION).group_id
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

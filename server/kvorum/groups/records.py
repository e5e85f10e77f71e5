"""Records of ``__consumer_offsets`` as a shard makes and replays them, and their errors.

A key is the number of the record's type (int16) and a message; a value is the version of its
message (int16) and the message. A null value is a tombstone.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from kvorum.wire.errors import WireError
from kvorum.wire.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kvorum.wire.messages.group_metadata_key import GroupMetadataKey
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kvorum.wire.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.share_group_metadata_key import ShareGroupMetadataKey
from kvorum.wire.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kvorum.wire.primitives import Message

GROUP_METADATA_VALUE_VERSION: Final = 3
OFFSET_COMMIT_VALUE_VERSION: Final = 4
EXPIRING_OFFSET_COMMIT_VALUE_VERSION: Final = 1
"""The only version with an expire timestamp; it has neither leader epoch nor topic id."""

GroupKey: TypeAlias = GroupMetadataKey | OffsetCommitKey | LegacyOffsetCommitKey
GroupValue: TypeAlias = GroupMetadataValue | OffsetCommitValue | LegacyOffsetCommitValue

_MessageT = TypeVar("_MessageT", bound=Message)
_NUMBER: Final = struct.Struct(">h")
_KEY_VERSION: Final = 0
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


class DamagedGroupRecordError(Exception):
    """A key or value that cannot be read, so that a shard cannot be loaded."""


@dataclass(frozen=True, slots=True)
class OtherGroupRecord:
    """A record of a group of another protocol than the classic one, with the group's id."""

    group_id: str
    ends_group: bool


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A key, and a value with its version; a value of None makes it a tombstone."""

    key: GroupKey
    value: GroupValue | None = None
    version: int = 0

    def key_bytes(self) -> bytes:
        """Return the key as it stands in the log."""
        return _NUMBER.pack(self.key.API_KEY) + self.key.encode(_KEY_VERSION)

    def value_bytes(self) -> bytes | None:
        """Return the value as it stands in the log; None for a tombstone."""
        if self.value is None:
            return None
        return _NUMBER.pack(self.version) + self.value.encode(self.version)


def decode_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Return a record of the log; None for one that has to be skipped.

    Skipped are types that Kafka's reference release does not know, and those of groups of other
    protocols (`decode_other_group_record`). Raises `DamagedGroupRecordError` for bytes that cannot
    be read or a value of a later version.
    """
    type_id = _number(key, "key")
    if type_id not in _KEYS:
        return None
    decoded_key = _decoded(_KEYS[type_id], key, _KEY_VERSION)
    if value is None:
        return CoordinatorRecord(decoded_key)
    version = _number(value, "value")
    return CoordinatorRecord(decoded_key, _decoded(_VALUES[type_id], value, version), version)


def decode_other_group_record(key: bytes, value: bytes | None) -> OtherGroupRecord | None:
    """Return a record of a consumer, share or streams group; None for every other record.

    Tombstones that leave the group are among the others. Raises `DamagedGroupRecordError` for a key
    that cannot be read.
    """
    type_id = _number(key, "key")
    is_end = value is None and type_id in _GROUP_METADATA_OF_OTHER_PROTOCOLS
    if type_id not in _OTHER_PROTOCOLS or (value is None and not is_end):
        return None
    group_id = _decoded(ConsumerGroupMetadataKey, key, _KEY_VERSION).group_id
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


def _number(data: bytes, what: str) -> int:
    if len(data) < _NUMBER.size:
        raise DamagedGroupRecordError(f"{what}: {len(data)} bytes are too few for its number")
    return int(_NUMBER.unpack_from(data)[0])


def _decoded(kind: type[_MessageT], data: bytes, version: int) -> _MessageT:
    try:
        message, _ = kind.decode_from(data, _NUMBER.size, version)
    except WireError as error:
        raise DamagedGroupRecordError(str(error)) from error
    return message

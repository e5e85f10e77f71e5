"""Records of the coordinators' topics: groups and offsets, transactions, share groups.

A key is the number of the record's type (int16) and a message; a value is the version of its
message (int16) and the message. A null value is a tombstone. As for Kafka's own readers, bytes
after a message are not an error.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.internal_topics.errors import DamagedRecordError, UnknownRecordTypeError
from kvorum.metadata.record_frame import record_type_name
from kvorum.wire.apis import message_class
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.primitives import Message

_NUMBER = struct.Struct(">h")
# All keys have this version only: the number before the message stands for the type instead.
_KEY_VERSION = 0
_CONSUMER = "consumer"


class CoordinatorKey(NamedTuple):
    """A decoded key: the type by its number and by Kafka's name, and the fields in JSON form."""

    type_id: int
    type: str
    fields: Json


class CoordinatorValue(NamedTuple):
    """A decoded value: the version of its message, and the fields in JSON form."""

    version: int
    fields: Json


@dataclass(frozen=True, slots=True)
class CoordinatorTopic:
    """One coordinator's topic: `messages` has their names, without "Key" and "Value", by type."""

    name: str
    messages: Mapping[int, str]

    def type_id(self, data: bytes) -> int:
        """Return the number of the record type at the beginning of a key.

        Raises `DamagedRecordError` for a key that is too short for one.
        """
        return _number(data, "key")

    def decode_key(self, data: bytes) -> CoordinatorKey:
        """Return what is in a key.

        Raises `UnknownRecordTypeError` or `DamagedRecordError`.
        """
        type_id = self.type_id(data)
        kind = message_class(f"{self._message(type_id)}Key")
        try:
            message, _ = kind.decode_from(data, _NUMBER.size, _KEY_VERSION)
        except WireError as error:
            raise DamagedRecordError(str(error)) from error
        type_name = record_type_name(kind).removesuffix("_KEY")
        return CoordinatorKey(type_id, type_name, to_json(message, _KEY_VERSION))

    def decode_value(self, type_id: int, data: bytes) -> CoordinatorValue:
        """Return what is in a value that is not null; `type_id` comes from the record's key.

        Raises `UnknownRecordTypeError` or `DamagedRecordError`.
        """
        kind = message_class(f"{self._message(type_id)}Value")
        version = _number(data, "value")
        try:
            message, _ = kind.decode_from(data, _NUMBER.size, version)
        except WireError as error:
            raise DamagedRecordError(str(error)) from error
        if isinstance(message, GroupMetadataValue):
            return CoordinatorValue(version, group_metadata_json(message, version))
        return CoordinatorValue(version, to_json(message, version))

    def _message(self, type_id: int) -> str:
        if type_id not in self.messages:
            raise UnknownRecordTypeError(type_id)
        return self.messages[type_id]


def _number(data: bytes, what: str) -> int:
    if len(data) < _NUMBER.size:
        raise DamagedRecordError(f"{what}: {len(data)} bytes are too few for its first number")
    return int(_NUMBER.unpack_from(data)[0])


CONSUMER_OFFSETS: Final = CoordinatorTopic(
    "__consumer_offsets",
    MappingProxyType(
        {
            0: "LegacyOffsetCommit",
            1: "OffsetCommit",
            2: "GroupMetadata",
            3: "ConsumerGroupMetadata",
            4: "ConsumerGroupPartitionMetadata",
            5: "ConsumerGroupMemberMetadata",
            6: "ConsumerGroupTargetAssignmentMetadata",
            7: "ConsumerGroupTargetAssignmentMember",
            8: "ConsumerGroupCurrentMemberAssignment",
            10: "ShareGroupMemberMetadata",
            11: "ShareGroupMetadata",
            12: "ShareGroupTargetAssignmentMetadata",
            13: "ShareGroupTargetAssignmentMember",
            14: "ShareGroupCurrentMemberAssignment",
            15: "ShareGroupStatePartitionMetadata",
            16: "ConsumerGroupRegularExpression",
            17: "StreamsGroupMetadata",
            19: "StreamsGroupMemberMetadata",
            20: "StreamsGroupTargetAssignmentMetadata",
            21: "StreamsGroupTargetAssignmentMember",
            22: "StreamsGroupCurrentMemberAssignment",
            23: "StreamsGroupTopology",
        }
    ),
)
TRANSACTION_STATE: Final = CoordinatorTopic(
    "__transaction_state", MappingProxyType({0: "TransactionLog"})
)
SHARE_GROUP_STATE: Final = CoordinatorTopic(
    "__share_group_state", MappingProxyType({0: "ShareSnapshot", 1: "ShareUpdate"})
)


def group_metadata_json(group: GroupMetadataValue, version: int) -> Json:
    """Return a group in the form in which kafka-dump-log prints it.

    In a group of consumers, subscriptions and assignments are decoded; bytes that no consumer of
    Kafka's would have written, and those of other protocols, remain base64.
    """
    fields = to_json(group, version)
    if group.protocol_type != _CONSUMER:
        return fields
    for member, shown in zip(group.members, fields["members"], strict=True):
        subscription = _decoded(member.subscription, ConsumerProtocolSubscription)
        assignment = _decoded(member.assignment, ConsumerProtocolAssignment)
        shown["subscription"] = shown["subscription"] if subscription is None else subscription
        shown["assignment"] = shown["assignment"] if assignment is None else assignment
    return fields


def _decoded(data: bytes, kind: type[Message]) -> Json | None:
    """Return a message with its version before it; None for bytes that are not one."""
    if len(data) < _NUMBER.size:
        return None
    version = int(_NUMBER.unpack_from(data)[0])
    try:
        message, _ = kind.decode_from(data, _NUMBER.size, version)
    except WireError:
        return None
    return to_json(message, version)

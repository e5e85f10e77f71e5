"""Records of the coordinators' topics: groups and offsets, transactions, share groups."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kvorum.cli.dump.payloads import Payload
from kvorum.metadata.json_text import json_text
from kvorum.wire.apis import message_class
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.primitives import Message
from kvorum.wire.records import Record

_NUMBER = struct.Struct(">h")
_KEY_VERSION = 0
_CONSUMER = "consumer"
_MEMBER_FIELDS: Mapping[str, type[Message]] = MappingProxyType(
    {"subscription": ConsumerProtocolSubscription, "assignment": ConsumerProtocolAssignment}
)

# The names of the messages in keys and values, without "Key" and "Value", by the number in a key.
GROUP_RECORDS: Mapping[int, str] = MappingProxyType(
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
)
TRANSACTION_RECORDS: Mapping[int, str] = MappingProxyType({0: "TransactionLog"})
SHARE_RECORDS: Mapping[int, str] = MappingProxyType({0: "ShareSnapshot", 1: "ShareUpdate"})


class MissingKeyError(ValueError):
    """A record without a key in a topic whose records all have one."""


@dataclass(frozen=True, slots=True)
class CoordinatorDecoder:
    """Decodes the records of one coordinator's topic; `names` by the number in the key."""

    names: Mapping[int, str]

    def __call__(self, record: Record) -> Payload:
        """Return key and value as JSON; for a record that cannot be read, the error is the key."""
        if record.key is None:
            raise MissingKeyError(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            number = int(_NUMBER.unpack_from(record.key)[0])
            if number not in self.names:
                problem = f"Unknown record type {number} at offset {record.offset}, skipping."
                return Payload(problem, None)
            return Payload(self._key(number, record.key), self._value(number, record.value))
        except (WireError, struct.error) as error:
            return Payload(f"Error at offset {record.offset}, skipping. {error}", None)

    def _key(self, number: int, data: bytes) -> str:
        kind = message_class(f"{self.names[number]}Key")
        message, _ = kind.decode_from(data, _NUMBER.size, _KEY_VERSION)
        return json_text({"type": str(number), "data": to_json(message, _KEY_VERSION)})

    def _value(self, number: int, data: bytes | None) -> str:
        if data is None:
            return "<DELETE>"
        version = int(_NUMBER.unpack_from(data)[0])
        kind = message_class(f"{self.names[number]}Value")
        message, _ = kind.decode_from(data, _NUMBER.size, version)
        fields = to_json(message, version)
        if self.names[number] == "GroupMetadata":
            _decode_members(fields)
        return json_text({"version": str(version), "data": fields})


def _decode_members(group: Json) -> None:
    """Replace the bytes that consumers sent by their decoded form, where they can be decoded."""
    if group.get("protocolType") != _CONSUMER:
        return
    for member in group.get("members", ()):
        for name, kind in _MEMBER_FIELDS.items():
            if name in member:
                member[name] = _decoded(member[name], kind)


def _decoded(text: str, kind: type[Message]) -> Json:
    data = base64.b64decode(text)
    try:
        version = int(_NUMBER.unpack_from(data)[0])
        message, _ = kind.decode_from(data, _NUMBER.size, version)
        return to_json(message, version)
    except (WireError, struct.error):
        return text

"""The bytes that consumers store in the metadata of a classic group, in Kafka's JSON form."""

from __future__ import annotations

import struct

from kvorum.wire.errors import WireError
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.primitives import Message

_NUMBER = struct.Struct(">h")
_CONSUMER = "consumer"


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

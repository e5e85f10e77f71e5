"""The protocol of consumers inside of classic groups: bytes that only its members need to read.

A version of two bytes goes before a message, ConsumerProtocolSubscription or
ConsumerProtocolAssignment. A reader takes a later version than its own for the newest it knows.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.errors import WireError
from kvorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.primitives import Message

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_VERSION: Final = struct.Struct(">h")
_PREFIX_VERSION: Final = 0
"""Every version of a subscription begins with the fields of this one."""
_MessageT = TypeVar("_MessageT", bound=Message)


class MalformedProtocolError(Exception):
    """Bytes of a member that are not a message of the consumers' protocol."""


def embedded_version(data: bytes) -> int:
    """Return the version that bytes are of; raises MalformedProtocolError for too few of them."""
    if len(data) < _VERSION.size:
        raise MalformedProtocolError("Buffer underflow while parsing consumer protocol's header")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def subscription_of(data: bytes) -> ConsumerProtocolSubscription:
    """Return the subscription of a member; raises MalformedProtocolError."""
    return _message(ConsumerProtocolSubscription, data, "subscription")


def assignment_of(data: bytes) -> ConsumerProtocolAssignment:
    """Return the assignment of a member; raises MalformedProtocolError."""
    return _message(ConsumerProtocolAssignment, data, "assignment")


def _message(kind: type[_MessageT], data: bytes, noun: str) -> _MessageT:
    version = embedded_version(data)
    if version < 0:
        raise MalformedProtocolError(f"Unsupported {noun} version: {version}")
    try:
        message, _ = kind.decode_from(data, _VERSION.size, min(version, kind.MAX_VERSION))
    except WireError as error:
        raise MalformedProtocolError(f"Malformed consumer protocol {noun}") from error
    return message


def assignment_bytes(
    partitions: Mapping[bytes, Iterable[int]], topics: TopicsImage, version: int
) -> bytes:
    """Return partitions, by topic id, as an assignment; topics that are gone are left out.

    Raises MalformedProtocolError for the version of a member whose bytes are no subscription.
    """
    if version < 0:
        raise MalformedProtocolError(f"Unsupported assignment version: {version}")
    written = min(version, ConsumerProtocolAssignment.MAX_VERSION)
    assigned = [
        ConsumerProtocolAssignment.TopicPartition(topics.by_id[topic_id].name, sorted(of_topic))
        for topic_id, of_topic in partitions.items()
        if topic_id in topics.by_id
    ]
    assigned.sort(key=lambda one: one.topic)
    return _VERSION.pack(written) + ConsumerProtocolAssignment(assigned).encode(written)


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all subscriptions; None if one of them cannot be read."""
    topics: set[str] = set()
    for data in subscriptions:
        if len(data) < _VERSION.size:
            return None
        try:
            message, _ = ConsumerProtocolSubscription.decode_from(
                data, _VERSION.size, _PREFIX_VERSION
            )
        except WireError:
            return None
        topics.update(message.topics)
    return frozenset(topics)

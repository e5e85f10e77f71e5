"""The topics that the members of a group of consumers have subscribed to."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kvorum.wire.errors import WireError
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_VERSION_BYTES: Final = struct.calcsize(">h")
# Every version begins with the fields of this one.
_PREFIX_VERSION: Final = 0


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all subscriptions; None if one of them cannot be read."""
    topics: set[str] = set()
    for data in subscriptions:
        if len(data) < _VERSION_BYTES:
            return None
        try:
            message, _ = ConsumerProtocolSubscription.decode_from(
                data, _VERSION_BYTES, _PREFIX_VERSION
            )
        except WireError:
            return None
        topics.update(message.topics)
    return frozenset(topics)

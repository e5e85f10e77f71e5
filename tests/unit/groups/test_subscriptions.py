"""Subscriptions of consumers: bytes that only the members have to understand."""

import pytest
from tests.unit.groups.coordinator import DELAY_MS, TOPIC, Coordinator

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


@pytest.mark.parametrize("version", [0, 1, 2, 3, 9])
def test_topics_are_read_of_every_version(version: int) -> None:
    body = ConsumerProtocolSubscription(topics=[TOPIC]).encode(min(version, 3))
    coordinator = Coordinator()
    coordinator.join(version=3, subscription=version.to_bytes(2, "big") + body)
    coordinator.advance(DELAY_MS)
    assert coordinator.group.subscribed_topics == frozenset({TOPIC})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\0\0",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xff" + bytes(8),
        b"\0\0\0\0\0\1\0\x20",
    ],
)
def test_bytes_that_cannot_be_read_mean_unknown_topics(data: bytes) -> None:
    """Kafka's join phase fails for the last four, and its group waits for ever."""
    coordinator = Coordinator()
    joined = coordinator.join(version=3, subscription=data)
    coordinator.advance(DELAY_MS)
    assert coordinator.join_error(joined) is ErrorCode.NONE
    assert coordinator.group.subscribed_topics is None
    assert coordinator.group.is_subscribed_to("any")

"""The configuration of a group: its own values, the broker's, and the broker's bounds."""

from collections.abc import Mapping

import pytest

from kvorum.groups.modern_group.group_config import (
    BoundedTimes,
    GroupConfig,
    GroupProtocol,
    group_config,
)
from kvorum.groups.settings import ConsumerGroupSettings, ShareGroupSettings
from kvorum.metadata.configs_image import (
    CLUSTER_RESOURCE,
    ConfigResource,
    ConfigsImage,
    ResourceType,
    replay_config,
)
from kvorum.wire.messages.config_record import ConfigRecord

SESSION = "session.timeout.ms"
HEARTBEAT = "heartbeat.interval.ms"
INTERVAL = "assignment.interval.ms"
SETTINGS: Mapping[GroupProtocol, BoundedTimes] = {
    GroupProtocol.CONSUMER: ConsumerGroupSettings(),
    GroupProtocol.SHARE: ShareGroupSettings(),
}
OF_GROUP: ConfigResource = (ResourceType.GROUP, "team")
OF_BROKER: ConfigResource = (ResourceType.BROKER, "1")
OF_OTHER_BROKER: ConfigResource = (ResourceType.BROKER, "2")


pytestmark = pytest.mark.parametrize("protocol", GroupProtocol)


def configured(
    protocol: GroupProtocol,
    values: Mapping[tuple[ConfigResource, str], str],
    group_id: str = "team",
) -> GroupConfig:
    """Return the times of a group; keys of brokers and groups are given without what they share."""
    configs = ConfigsImage()
    for ((kind, name), end), text in values.items():
        key = f"{protocol.value}.{end}"
        if kind is not ResourceType.GROUP:
            key = f"group.{key}"
        configs = replay_config(configs, ConfigRecord(kind, name, key, text))
    return group_config(configs, group_id, protocol, SETTINGS[protocol], broker_id=1)


def times(session_ms: int, heartbeat_ms: int, interval_ms: int) -> GroupConfig:
    return GroupConfig(
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        assignment_interval_ms=interval_ms,
    )


def test_a_groups_own_values_are_its_alone(protocol: GroupProtocol) -> None:
    own = {(OF_GROUP, SESSION): "50000", (OF_GROUP, HEARTBEAT): "6000", (OF_GROUP, INTERVAL): "7"}
    assert configured(protocol, own) == times(50_000, 6_000, 7)
    assert configured(protocol, own, "other") == times(45_000, 5_000, 1_000)


def test_a_key_that_the_group_does_not_set_has_the_brokers_value(protocol: GroupProtocol) -> None:
    assert configured(protocol, {(OF_GROUP, HEARTBEAT): "6000"}) == times(45_000, 6_000, 1_000)


def test_a_text_that_cannot_be_read_counts_as_not_set(protocol: GroupProtocol) -> None:
    assert configured(protocol, {(OF_GROUP, SESSION): "soon"}) == times(45_000, 5_000, 1_000)


@pytest.mark.parametrize(
    ("text", "bounded"),
    [("1", times(45_000, 5_000, 1)), ("2147483647", times(60_000, 15_000, 15_000))],
)
def test_values_are_brought_within_the_brokers_bounds(
    protocol: GroupProtocol, text: str, bounded: GroupConfig
) -> None:
    assert (
        configured(protocol, {(OF_GROUP, key): text for key in (SESSION, HEARTBEAT, INTERVAL)})
        == bounded
    )


@pytest.mark.parametrize(
    ("values", "interval_ms"),
    [
        ({CLUSTER_RESOURCE: "2"}, 2),
        ({OF_BROKER: "3", CLUSTER_RESOURCE: "2"}, 3),
        ({OF_OTHER_BROKER: "3"}, 1_000),
        ({OF_BROKER: "never", CLUSTER_RESOURCE: "2"}, 2),
        ({CLUSTER_RESOURCE: "15001"}, 15_000),
    ],
)
def test_the_brokers_dynamic_interval_is_that_of_groups_without_one(
    protocol: GroupProtocol, values: Mapping[ConfigResource, str], interval_ms: int
) -> None:
    dynamic = {(resource, INTERVAL): text for resource, text in values.items()}
    assert configured(protocol, dynamic).assignment_interval_ms == interval_ms
    assert configured(protocol, {**dynamic, (OF_GROUP, INTERVAL): "9"}).assignment_interval_ms == 9

"""The configuration of a consumer group: its own values, the broker's, and the broker's bounds."""

from collections.abc import Mapping

import pytest

from kvorum.groups.consumer_group.group_config import ConsumerGroupConfig, group_config
from kvorum.groups.settings import ConsumerGroupSettings
from kvorum.metadata.configs_image import (
    CLUSTER_RESOURCE,
    ConfigResource,
    ConfigsImage,
    ResourceType,
    replay_config,
)
from kvorum.wire.messages.config_record import ConfigRecord

SESSION = "consumer.session.timeout.ms"
HEARTBEAT = "consumer.heartbeat.interval.ms"
INTERVAL = "consumer.assignment.interval.ms"
BROKERS_INTERVAL = f"group.{INTERVAL}"
OF_GROUP: ConfigResource = (ResourceType.GROUP, "team")
OF_BROKER: ConfigResource = (ResourceType.BROKER, "1")
OF_OTHER_BROKER: ConfigResource = (ResourceType.BROKER, "2")


def configured(
    values: Mapping[tuple[ConfigResource, str], str], group_id: str = "team"
) -> ConsumerGroupConfig:
    configs = ConfigsImage()
    for ((kind, name), key), text in values.items():
        configs = replay_config(configs, ConfigRecord(kind, name, key, text))
    return group_config(configs, group_id, ConsumerGroupSettings(), broker_id=1)


def times(session_ms: int, heartbeat_ms: int, interval_ms: int) -> ConsumerGroupConfig:
    return ConsumerGroupConfig(
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        assignment_interval_ms=interval_ms,
    )


def test_a_groups_own_values_are_its_alone() -> None:
    own = {(OF_GROUP, SESSION): "50000", (OF_GROUP, HEARTBEAT): "6000", (OF_GROUP, INTERVAL): "7"}
    assert configured(own) == times(50_000, 6_000, 7)
    assert configured(own, "other") == times(45_000, 5_000, 1_000)


def test_a_key_that_the_group_does_not_set_has_the_brokers_value() -> None:
    assert configured({(OF_GROUP, HEARTBEAT): "6000"}) == times(45_000, 6_000, 1_000)


def test_a_text_that_cannot_be_read_counts_as_not_set() -> None:
    assert configured({(OF_GROUP, SESSION): "soon"}) == times(45_000, 5_000, 1_000)


@pytest.mark.parametrize(
    ("text", "bounded"),
    [("1", times(45_000, 5_000, 1)), ("2147483647", times(60_000, 15_000, 15_000))],
)
def test_values_are_brought_within_the_brokers_bounds(
    text: str, bounded: ConsumerGroupConfig
) -> None:
    assert configured({(OF_GROUP, key): text for key in (SESSION, HEARTBEAT, INTERVAL)}) == bounded


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
    values: Mapping[ConfigResource, str], interval_ms: int
) -> None:
    dynamic = {(resource, BROKERS_INTERVAL): text for resource, text in values.items()}
    assert configured(dynamic).assignment_interval_ms == interval_ms
    assert configured({**dynamic, (OF_GROUP, INTERVAL): "9"}).assignment_interval_ms == 9

"""The configuration of one consumer group: its own values, else those of its broker."""

from dataclasses import dataclass
from typing import Final

from kvorum.groups.settings import ASSIGNMENT_INTERVAL, ConsumerGroupSettings
from kvorum.metadata.config_definitions import BROKER_CONFIGS, GROUP_CONFIGS
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.own_values import own_number, within

_BROKERS_ASSIGNMENT_INTERVAL: Final = BROKER_CONFIGS[ASSIGNMENT_INTERVAL]
_ASSIGNMENT_INTERVAL: Final = GROUP_CONFIGS["consumer.assignment.interval.ms"]
_HEARTBEAT_INTERVAL: Final = GROUP_CONFIGS["consumer.heartbeat.interval.ms"]
_SESSION_TIMEOUT: Final = GROUP_CONFIGS["consumer.session.timeout.ms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupConfig:
    """The times of one consumer group that are in force, in milliseconds."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def group_config(
    configs: ConfigsImage, group_id: str, settings: ConsumerGroupSettings, *, broker_id: int
) -> ConsumerGroupConfig:
    """Return the configuration of a group as the broker `broker_id` applies it.

    The group's own values, which another broker may have allowed, are brought within the bounds of
    `settings` (Kafka's GroupConfig.evaluate). A session may then be no longer than an interval of
    heartbeats: Kafka warns of it and goes on.
    """
    own = configs.of(ResourceType.GROUP, group_id)
    session_ms = own_number(_SESSION_TIMEOUT, own)
    heartbeat_ms = own_number(_HEARTBEAT_INTERVAL, own)
    interval_ms = own_number(_ASSIGNMENT_INTERVAL, own)
    if interval_ms is None:
        interval_ms = _brokers_assignment_interval_ms(configs, settings, broker_id)
    return ConsumerGroupConfig(
        session_timeout_ms=within(
            settings.session_timeout_ms if session_ms is None else session_ms,
            settings.session_timeout_ms_min,
            settings.session_timeout_ms_max,
        ),
        heartbeat_interval_ms=within(
            settings.heartbeat_interval_ms if heartbeat_ms is None else heartbeat_ms,
            settings.heartbeat_interval_ms_min,
            settings.heartbeat_interval_ms_max,
        ),
        assignment_interval_ms=within(
            interval_ms, settings.assignment_interval_ms_min, settings.assignment_interval_ms_max
        ),
    )


def _brokers_assignment_interval_ms(
    configs: ConfigsImage, settings: ConsumerGroupSettings, broker_id: int
) -> int:
    """Return the dynamic value of the broker, else of the cluster, else that of `settings`."""
    for dynamic in (configs.of(ResourceType.BROKER, str(broker_id)), configs.of_cluster()):
        interval_ms = own_number(_BROKERS_ASSIGNMENT_INTERVAL, dynamic)
        if interval_ms is not None:
            return interval_ms
    return settings.assignment_interval_ms

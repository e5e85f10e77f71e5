"""The configuration of one consumer or share group: its own values, else those of its broker."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from kvorum.metadata.config_definitions import BROKER_CONFIGS, GROUP_CONFIGS
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.own_values import own_number, within


class GroupProtocol(Enum):
    """A protocol of groups, by the word in the names of its keys."""

    CONSUMER = "consumer"
    SHARE = "share"


class BoundedTimes(Protocol):
    """The broker's values of the times of groups, and their bounds, in milliseconds."""

    @property
    def session_timeout_ms(self) -> int:
        """The time after which a member that is not heard of is gone."""
        ...

    @property
    def session_timeout_ms_min(self) -> int:
        """The shortest session of a group."""
        ...

    @property
    def session_timeout_ms_max(self) -> int:
        """The longest session of a group."""
        ...

    @property
    def heartbeat_interval_ms(self) -> int:
        """The time from one heartbeat of a member to the next one."""
        ...

    @property
    def heartbeat_interval_ms_min(self) -> int:
        """The shortest interval of heartbeats of a group."""
        ...

    @property
    def heartbeat_interval_ms_max(self) -> int:
        """The longest interval of heartbeats of a group."""
        ...

    @property
    def assignment_interval_ms(self) -> int:
        """The time from one target assignment of a group to the next one."""
        ...

    @property
    def assignment_interval_ms_min(self) -> int:
        """The shortest interval of target assignments of a group."""
        ...

    @property
    def assignment_interval_ms_max(self) -> int:
        """The longest interval of target assignments of a group."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """The times of one group that are in force, in milliseconds."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


def group_config(
    configs: ConfigsImage,
    group_id: str,
    protocol: GroupProtocol,
    settings: BoundedTimes,
    *,
    broker_id: int,
) -> GroupConfig:
    """Return the configuration of a group as the broker `broker_id` applies it.

    The group's own values, which another broker may have allowed, are brought within the bounds of
    `settings` (Kafka's GroupConfig.evaluate). A session may then be no longer than an interval of
    heartbeats: Kafka warns of it and goes on.
    """
    own = configs.of(ResourceType.GROUP, group_id)
    session_ms = own_number(GROUP_CONFIGS[f"{protocol.value}.session.timeout.ms"], own)
    heartbeat_ms = own_number(GROUP_CONFIGS[f"{protocol.value}.heartbeat.interval.ms"], own)
    interval_ms = own_number(GROUP_CONFIGS[f"{protocol.value}.assignment.interval.ms"], own)
    if interval_ms is None:
        interval_ms = _brokers_assignment_interval_ms(configs, protocol, settings, broker_id)
    return GroupConfig(
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
    configs: ConfigsImage, protocol: GroupProtocol, settings: BoundedTimes, broker_id: int
) -> int:
    """Return the dynamic value of the broker, else of the cluster, else that of `settings`."""
    definition = BROKER_CONFIGS[f"group.{protocol.value}.assignment.interval.ms"]
    for dynamic in (configs.of(ResourceType.BROKER, str(broker_id)), configs.of_cluster()):
        interval_ms = own_number(definition, dynamic)
        if interval_ms is not None:
            return interval_ms
    return settings.assignment_interval_ms

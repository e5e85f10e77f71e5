"""The settings of a group coordinator; times in milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Final

from kvorum.groups.migration_policy import MigrationPolicy

REBALANCE_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"
ASSIGNMENT_INTERVAL: Final = "group.consumer.assignment.interval.ms"
"""The only key of consumer groups that can change while a broker runs."""
SHARE_ASSIGNMENT_INTERVAL: Final = "group.share.assignment.interval.ms"
"""The only key of share groups that can change while a broker runs."""
ASSIGNOR_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "uniform": "uniform",
        "range": "range",
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
    }
)
"""The names of the assignors, by what may stand in the configuration: the name or the class."""
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""The time for which a new member may wait in a join; a constant in Kafka too."""


def _minutes(minutes: int) -> int:
    return minutes * 60_000


def _names_consumer(protocols: tuple[str, ...]) -> bool:
    return "consumer" in protocols


def _assignor_names(words: tuple[str, ...]) -> tuple[str, ...]:
    # Other words are classes of Java, which only a tool accepts: it runs no assignor.
    return tuple(ASSIGNOR_NAMES.get(word, word) for word in words)


def _policy(word: str) -> MigrationPolicy:
    return MigrationPolicy(word.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupSettings:
    """The broker's configuration of consumer groups, with Kafka's defaults.

    A group's own configuration (resource GROUP) may say otherwise within the bounds.
    """

    is_enabled: Annotated[bool, REBALANCE_PROTOCOLS, _names_consumer] = True
    """Whether the broker serves the consumer protocol, where the cluster has it."""
    session_timeout_ms: Annotated[int, "group.consumer.session.timeout.ms"] = 45_000
    session_timeout_ms_min: Annotated[int, "group.consumer.min.session.timeout.ms"] = 45_000
    session_timeout_ms_max: Annotated[int, "group.consumer.max.session.timeout.ms"] = 60_000
    heartbeat_interval_ms: Annotated[int, "group.consumer.heartbeat.interval.ms"] = 5_000
    heartbeat_interval_ms_min: Annotated[int, "group.consumer.min.heartbeat.interval.ms"] = 5_000
    heartbeat_interval_ms_max: Annotated[int, "group.consumer.max.heartbeat.interval.ms"] = 15_000
    assignment_interval_ms: Annotated[int, ASSIGNMENT_INTERVAL] = 1_000
    """The time from one target assignment of a group to the next one."""
    assignment_interval_ms_min: Annotated[int, "group.consumer.min.assignment.interval.ms"] = 0
    assignment_interval_ms_max: Annotated[int, "group.consumer.max.assignment.interval.ms"] = 15_000
    max_size: Annotated[int, "group.consumer.max.size"] = 2**31 - 1
    assignors: Annotated[tuple[str, ...], "group.consumer.assignors", _assignor_names] = (
        "uniform",
        "range",
    )
    """The names of the assignors; the first one is the default."""
    migration_policy: Annotated[MigrationPolicy, "group.consumer.migration.policy", _policy] = (
        MigrationPolicy.BIDIRECTIONAL
    )
    regex_refresh_interval_ms: Annotated[int, "group.consumer.regex.refresh.interval.ms"] = 600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSettings:
    """The broker's configuration of share groups, with Kafka's defaults.

    A group's own configuration (resource GROUP) may say otherwise within the bounds.
    """

    session_timeout_ms: Annotated[int, "group.share.session.timeout.ms"] = 45_000
    session_timeout_ms_min: Annotated[int, "group.share.min.session.timeout.ms"] = 45_000
    session_timeout_ms_max: Annotated[int, "group.share.max.session.timeout.ms"] = 60_000
    heartbeat_interval_ms: Annotated[int, "group.share.heartbeat.interval.ms"] = 5_000
    heartbeat_interval_ms_min: Annotated[int, "group.share.min.heartbeat.interval.ms"] = 5_000
    heartbeat_interval_ms_max: Annotated[int, "group.share.max.heartbeat.interval.ms"] = 15_000
    assignment_interval_ms: Annotated[int, SHARE_ASSIGNMENT_INTERVAL] = 1_000
    """The time from one target assignment of a group to the next one."""
    assignment_interval_ms_min: Annotated[int, "group.share.min.assignment.interval.ms"] = 0
    assignment_interval_ms_max: Annotated[int, "group.share.max.assignment.interval.ms"] = 15_000
    max_size: Annotated[int, "group.share.max.size"] = 200
    initialize_retry_ms: Annotated[int, "group.share.initialize.retry.interval.ms"] = 30_000
    initialize_retry_ms_min: Annotated[int, "offsets.commit.timeout.ms"] = 5_000

    @property
    def initialize_retry_interval_ms(self) -> int:
        """The time after which the state of a partition is initialized again, if it still is not.

        A commit to the log may take as long as `initialize_retry_ms_min`.
        """
        return max(self.initialize_retry_ms, self.initialize_retry_ms_min)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoordinatorSettings:
    """The broker's configuration of groups and of offsets, with Kafka's defaults."""

    consumer: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)
    share: ShareGroupSettings = field(default_factory=ShareGroupSettings)

    group_max_size: Annotated[int, "group.max.size"] = 2**31 - 1
    group_initial_rebalance_delay_ms: Annotated[int, "group.initial.rebalance.delay.ms"] = 3000
    offset_metadata_max_bytes: Annotated[int, "offset.metadata.max.bytes"] = 4096
    """Counted in UTF-16 units, in spite of its name in Kafka."""
    offsets_retention_ms: Annotated[int, "offsets.retention.minutes", _minutes] = 10080 * 60_000
    offsets_retention_check_interval_ms: Annotated[int, "offsets.retention.check.interval.ms"] = (
        600_000
    )

"""The tables: the row type of each, and the row types by the tables' names.

Most tables are of what happened. Those of the state at the end come last.
"""

from collections.abc import Mapping
from enum import StrEnum, unique
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from kvorum.history.columns import (
    EndpointColumn,
    FeatureRangeColumn,
    Int32,
    Int64,
    QuotaEntityColumn,
    TimestampMs,
    VoterColumn,
)


@unique
class Action(StrEnum):
    """Kinds of changes."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class ConfigChangeRow(NamedTuple):
    """A change of a dynamic configuration value."""

    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    action: str
    resource_type: str
    resource_name: str
    name: str
    old_value: str | None
    new_value: str | None
    is_sensitive: bool | None
    is_topic_deleted: bool


class AclChangeRow(NamedTuple):
    """An access control entry that was added or removed."""

    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    action: str
    acl_id: str
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


class QuotaChangeRow(NamedTuple):
    """A change of a client quota."""

    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    action: str
    entity: tuple[QuotaEntityColumn, ...]
    key: str
    old_value: float | None
    new_value: float | None


class ScramChangeRow(NamedTuple):
    """A SCRAM credential that was set or removed; salt and keys are left out."""

    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    action: str
    user: str
    mechanism: str
    iterations: Int32


class FeatureChangeRow(NamedTuple):
    """A change of a feature's finalized level; 0 is off."""

    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    feature: str
    old_level: Int32
    new_level: Int32


class DelegationTokenChangeRow(NamedTuple):
    """A delegation token that was created, renewed or removed; its secret is not in the log."""

    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    action: str
    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_time: TimestampMs
    max_time: TimestampMs
    expiration_time: TimestampMs


class ProducerIdsRow(NamedTuple):
    """A block of producer ids that was given to a broker."""

    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    broker_id: Int32
    broker_epoch: Int64
    first_producer_id: Int64 | None
    next_producer_id: Int64


@unique
class BrokerState(StrEnum):
    """States of a registered broker."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"


class BrokerSessionRow(NamedTuple):
    """An incarnation of a broker, from its registration until another one takes its place."""

    broker_id: Int32
    incarnation_id: str
    broker_epoch: Int64
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    first_unfenced_offset: Int64 | None
    first_unfenced_time: TimestampMs | None
    last_fenced_offset: Int64 | None
    last_fenced_time: TimestampMs | None
    fenced_count: Int32
    controlled_shutdown_offset: Int64 | None
    controlled_shutdown_time: TimestampMs | None
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str
    rack: str | None
    endpoints: tuple[EndpointColumn, ...]
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...] | None
    features: tuple[FeatureRangeColumn, ...]


class BrokerStateRow(NamedTuple):
    """A registered broker was in a state from the record at `from_offset` up to `to_offset`."""

    broker_id: Int32
    incarnation_id: str
    broker_epoch: Int64
    state: str
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str


class ControllerRegistrationRow(NamedTuple):
    """A registration of a controller, up to the one that takes its place (KIP-919)."""

    controller_id: Int32
    incarnation_id: str
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str
    endpoints: tuple[EndpointColumn, ...]
    features: tuple[FeatureRangeColumn, ...]


class PartitionTimelineRow(NamedTuple):
    """The state of a partition from the record at `from_offset` up to that at `to_offset`."""

    topic_name: str
    topic_id: str
    partition_id: Int32
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str
    leader: Int32
    leader_epoch: Int32
    partition_epoch: Int32
    leader_recovery_state: Int32
    isr: tuple[Int32, ...]
    eligible_leader_replicas: tuple[Int32, ...]
    last_known_elr: tuple[Int32, ...]
    replicas: tuple[Int32, ...]
    adding_replicas: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...]
    directories: tuple[str, ...]


@unique
class LeaderChangeCause(StrEnum):
    """Causes of leader changes, as far as the log contains them."""

    PARTITION_CREATED = "partition_created"
    BROKER_FENCED = "broker_fenced"
    CONTROLLED_SHUTDOWN = "controlled_shutdown"
    BROKER_UNREGISTERED = "broker_unregistered"
    BROKER_RESTARTED = "broker_restarted"
    DIRECTORY_FAILED = "directory_failed"
    BROKER_UNFENCED = "broker_unfenced"
    PREFERRED_ELECTION = "preferred_election"
    REASSIGNMENT = "reassignment"
    UNCLEAN_ELECTION = "unclean_election"
    UNKNOWN = "unknown"


class LeaderChangeRow(NamedTuple):
    """A record that gave a partition another leader, or took the last one away (-1)."""

    topic_name: str
    topic_id: str
    partition_id: Int32
    offset: Int64
    time: TimestampMs
    controller_epoch: Int32
    old_leader: Int32 | None
    new_leader: Int32
    old_leader_epoch: Int32 | None
    leader_epoch: Int32
    partition_epoch: Int32
    is_unclean: bool
    cause: str


@unique
class Condition(StrEnum):
    """Conditions in which a partition is not fully available."""

    OFFLINE = "offline"
    UNDER_REPLICATED = "under_replicated"
    UNDER_MIN_ISR = "under_min_isr"


class AvailabilityRow(NamedTuple):
    """A partition was in a condition from the record at `from_offset` up to that at `to_offset`."""

    topic_name: str
    topic_id: str
    partition_id: Int32
    condition: str
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    duration_ms: Int64
    end_reason: str


class QuorumEpochRow(NamedTuple):
    """An epoch of the quorum and its leader, up to the begin of the next epoch in the log."""

    epoch: Int32
    leader: Int32 | None
    voters: tuple[Int32, ...]
    granting_voters: tuple[Int32, ...]
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str


class QuorumVotersRow(NamedTuple):
    """The kraft.version and the voters from the record at `from_offset` up to `to_offset`."""

    kraft_version: Int32
    voters: tuple[VoterColumn, ...]
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str


class TopicRow(NamedTuple):
    """A topic."""

    topic_name: str
    topic_id: str
    partition_count: Int64


class PartitionRow(NamedTuple):
    """A partition of a topic."""

    topic_name: str
    topic_id: str
    partition_id: Int32
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...]
    adding_replicas: tuple[Int32, ...]
    leader: Int32
    leader_epoch: Int32
    partition_epoch: Int32
    leader_recovery_state: Int32
    directories: tuple[str, ...]
    eligible_leader_replicas: tuple[Int32, ...]
    last_known_elr: tuple[Int32, ...]


class BrokerRow(NamedTuple):
    """A registered broker."""

    broker_id: Int32
    incarnation_id: str
    broker_epoch: Int64
    state: str
    rack: str | None
    endpoints: tuple[EndpointColumn, ...]
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...] | None
    features: tuple[FeatureRangeColumn, ...]


class ConfigRow(NamedTuple):
    """A dynamic configuration value."""

    resource_type: str
    resource_name: str
    name: str
    value: str
    is_sensitive: bool | None


class AclRow(NamedTuple):
    """An access control entry."""

    acl_id: str
    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


class QuotaRow(NamedTuple):
    """A client quota."""

    entity: tuple[QuotaEntityColumn, ...]
    key: str
    value: float


class FeatureRow(NamedTuple):
    """A feature whose finalized level is above 0."""

    feature: str
    level: Int32


HistoryRow: TypeAlias = (
    PartitionTimelineRow
    | LeaderChangeRow
    | AvailabilityRow
    | BrokerSessionRow
    | BrokerStateRow
    | ControllerRegistrationRow
    | ConfigChangeRow
    | AclChangeRow
    | QuotaChangeRow
    | ScramChangeRow
    | FeatureChangeRow
    | DelegationTokenChangeRow
    | ProducerIdsRow
    | QuorumEpochRow
    | QuorumVotersRow
)
StateRow: TypeAlias = (
    TopicRow | PartitionRow | BrokerRow | ConfigRow | AclRow | QuotaRow | FeatureRow | VoterColumn
)

HISTORY_TABLES: Final[Mapping[str, type[HistoryRow]]] = MappingProxyType(
    {
        "partition_timeline": PartitionTimelineRow,
        "leader_changes": LeaderChangeRow,
        "availability": AvailabilityRow,
        "broker_sessions": BrokerSessionRow,
        "broker_states": BrokerStateRow,
        "controller_registrations": ControllerRegistrationRow,
        "config_history": ConfigChangeRow,
        "acl_history": AclChangeRow,
        "quota_history": QuotaChangeRow,
        "scram_history": ScramChangeRow,
        "feature_history": FeatureChangeRow,
        "delegation_token_history": DelegationTokenChangeRow,
        "producer_ids": ProducerIdsRow,
        "quorum_epochs": QuorumEpochRow,
        "quorum_voters": QuorumVotersRow,
    }
)
"""The tables of what happened, by name."""

STATE_TABLES: Final[Mapping[str, type[StateRow]]] = MappingProxyType(
    {
        "topics": TopicRow,
        "partitions": PartitionRow,
        "brokers": BrokerRow,
        "configs": ConfigRow,
        "acls": AclRow,
        "quotas": QuotaRow,
        "features": FeatureRow,
        "voters": VoterColumn,
    }
)
"""The tables of the state at the end, by name."""

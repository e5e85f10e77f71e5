"""Rows of the state at the end of the records that were folded."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.spark.history.columns import (
    EndpointColumn,
    FeatureRangeColumn,
    Int32,
    Int64,
    QuotaEntityColumn,
    VoterEndpointColumn,
)


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


class VoterRow(NamedTuple):
    """A voter of the quorum, as the latest VotersRecord lists it."""

    voter_id: Int32
    directory_id: str
    endpoints: tuple[VoterEndpointColumn, ...]
    min_kraft_version: Int32
    max_kraft_version: Int32

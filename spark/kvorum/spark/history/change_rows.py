"""Rows about values that records set and remove: one row for each change of a value."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple

from kvorum.spark.history.columns import Int32, Int64, QuotaEntityColumn, TimestampMs


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

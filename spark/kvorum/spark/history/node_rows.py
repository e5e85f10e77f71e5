"""Rows about nodes: sessions and states of brokers, registrations of controllers."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple

from kvorum.spark.history.columns import (
    EndpointColumn,
    FeatureRangeColumn,
    Int32,
    Int64,
    TimestampMs,
)


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

"""Rows about partitions: their state from offset to offset, leader changes and availability."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import NamedTuple

from kvorum.spark.history.columns import Int32, Int64, TimestampMs


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

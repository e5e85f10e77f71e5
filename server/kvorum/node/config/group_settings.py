"""The settings of the group coordinator: ``group.*`` and ``offsets.*`` (GroupCoordinatorConfig)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.node.config.errors import require
from kvorum.node.config.values import BrokerValues
from kvorum.wire.records import Compression

_MS_PER_MINUTE: Final = 60_000


@dataclass(frozen=True, slots=True)
class OffsetsTopicSettings:
    """The settings of ``__consumer_offsets`` and of its batches."""

    partition_count: int
    replication_factor: int
    segment_bytes: int
    compression: Compression


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Limits of members' sessions, the time an append may take, and what a shard has to know."""

    coordinator: GroupCoordinatorSettings
    session_timeout_ms_min: int
    session_timeout_ms_max: int
    commit_timeout_ms: int
    topic: OffsetsTopicSettings


def group_settings(values: BrokerValues) -> GroupSettings:
    """Read the keys of classic groups and of ``__consumer_offsets``."""
    codec = values.integer("offsets.topic.compression.codec")
    require(codec in list(Compression), f"Unknown compression type id: {codec}")
    return GroupSettings(
        coordinator=GroupCoordinatorSettings(
            group_max_size=values.integer("group.max.size"),
            group_initial_rebalance_delay_ms=values.integer("group.initial.rebalance.delay.ms"),
            offset_metadata_max_bytes=values.integer("offset.metadata.max.bytes"),
            offsets_retention_ms=values.integer("offsets.retention.minutes") * _MS_PER_MINUTE,
            offsets_retention_check_interval_ms=values.integer(
                "offsets.retention.check.interval.ms"
            ),
        ),
        session_timeout_ms_min=values.integer("group.min.session.timeout.ms"),
        session_timeout_ms_max=values.integer("group.max.session.timeout.ms"),
        commit_timeout_ms=values.integer("offsets.commit.timeout.ms"),
        topic=OffsetsTopicSettings(
            partition_count=values.integer("offsets.topic.num.partitions"),
            replication_factor=values.integer("offsets.topic.replication.factor"),
            segment_bytes=values.integer("offsets.topic.segment.bytes"),
            compression=Compression(codec),
        ),
    )

"""The configuration of one share group as leaders apply it: its own values, else the broker's."""

from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from kvorum.broker.dead_letter_queue.dead_letter_topic import group_dead_letter_queue
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.metadata.config_definitions import GROUP_CONFIGS, ConfigDefinition
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import SHARE_VERSION_FEATURE
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.own_values import default_value, own_number, own_value, within

FIRST_LEVEL_WITH_DEAD_LETTER_QUEUES: Final = 2
"""The first level of share.version with them (KIP-1191)."""
_AUTO_OFFSET_RESET: Final = GROUP_CONFIGS["share.auto.offset.reset"]
_DELIVERY_COUNT_LIMIT: Final = GROUP_CONFIGS["share.delivery.count.limit"]
_ISOLATION_LEVEL: Final = GROUP_CONFIGS["share.isolation.level"]
_MAX_RECORD_LOCKS: Final = GROUP_CONFIGS["share.partition.max.record.locks"]
_RECORD_LOCK_DURATION: Final = GROUP_CONFIGS["share.record.lock.duration.ms"]
_RENEW_ACKNOWLEDGE: Final = GROUP_CONFIGS["share.renew.acknowledge.enable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareFetchSettings:
    """The broker's configuration of the records that share groups acquire, with Kafka's defaults.

    A group's own configuration (resource GROUP) may say otherwise within the bounds.
    """

    sessions_max: Annotated[int, "group.share.max.share.sessions"] = 2_000
    delivery_count_limit: Annotated[int, "group.share.delivery.count.limit"] = 5
    delivery_count_limit_min: Annotated[int, "group.share.min.delivery.count.limit"] = 2
    delivery_count_limit_max: Annotated[int, "group.share.max.delivery.count.limit"] = 10
    record_lock_duration_ms: Annotated[int, "group.share.record.lock.duration.ms"] = 30_000
    record_lock_duration_ms_min: Annotated[int, "group.share.min.record.lock.duration.ms"] = 15_000
    record_lock_duration_ms_max: Annotated[int, "group.share.max.record.lock.duration.ms"] = 60_000
    record_locks_max: Annotated[int, "group.share.partition.max.record.locks"] = 2_000
    record_locks_max_least: Annotated[int, "group.share.min.partition.max.record.locks"] = 100
    record_locks_max_most: Annotated[int, "group.share.max.partition.max.record.locks"] = 4_000


class ShareGroupConfig(NamedTuple):
    """The configuration of one share group that is in force.

    `auto_offset_reset` is the text of ``share.auto.offset.reset``.
    """

    partition: SharePartitionSettings
    auto_offset_reset: str
    isolation: IsolationLevel


def share_group_config(
    image: MetadataImage, group_id: str, settings: ShareFetchSettings
) -> ShareGroupConfig:
    """Return the configuration of a group; its own values are brought within the bounds."""
    own = image.configs.of(ResourceType.GROUP, group_id)
    share_version = image.features.level(SHARE_VERSION_FEATURE)
    dead_letter_queue = group_dead_letter_queue(group_id, image.configs)

    def own_or_default(definition: ConfigDefinition) -> object:
        value = own_value(definition, own)
        return default_value(definition) if value is None else value

    delivery_count = own_number(_DELIVERY_COUNT_LIMIT, own)
    lock_ms = own_number(_RECORD_LOCK_DURATION, own)
    locks = own_number(_MAX_RECORD_LOCKS, own)
    isolation = IsolationLevel[str(own_or_default(_ISOLATION_LEVEL)).upper()]
    partition = SharePartitionSettings(
        delivery_count_limit=settings.delivery_count_limit
        if delivery_count is None
        else within(
            delivery_count, settings.delivery_count_limit_min, settings.delivery_count_limit_max
        ),
        record_lock_duration_ms=settings.record_lock_duration_ms
        if lock_ms is None
        else within(
            lock_ms, settings.record_lock_duration_ms_min, settings.record_lock_duration_ms_max
        ),
        record_locks_max=settings.record_locks_max
        if locks is None
        else within(locks, settings.record_locks_max_least, settings.record_locks_max_most),
        is_renew_acknowledge_enabled=own_or_default(_RENEW_ACKNOWLEDGE) is True,
        is_dead_letter_queue_enabled=share_version >= FIRST_LEVEL_WITH_DEAD_LETTER_QUEUES
        and dead_letter_queue.topic != "",
    )
    return ShareGroupConfig(
        partition,
        auto_offset_reset=str(own_or_default(_AUTO_OFFSET_RESET)),
        isolation=isolation,
    )

"""The settings of a topic's logs, from its configuration and the broker's (Kafka's LogConfig)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, cast

from kvorum.broker.views.config_layers import config_layers
from kvorum.metadata.config_definitions import InvalidConfigError, parse_value
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.effective_configs import (
    MIN_INSYNC_REPLICAS,
    BrokerConfigLayers,
    effective_topic_config,
)
from kvorum.metadata.image import MetadataImage
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.topic_log.log_validator import RecordRules, TimestampType
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig
from kvorum.wire.records import DECOMPRESSED_BYTES_MAX, Compression
from kvorum.wire.records.compression import STORED_UNPACKED_BYTES_MAX

_COMPRESSIONS: Final[Mapping[str, Compression | None]] = MappingProxyType(
    {
        "producer": None,
        "uncompressed": Compression.NONE,
        "gzip": Compression.GZIP,
        "snappy": Compression.SNAPPY,
        "lz4": Compression.LZ4,
        "zstd": Compression.ZSTD,
    }
)
_TIMESTAMP_TYPES: Final[Mapping[str, TimestampType]] = MappingProxyType(
    {
        "CreateTime": TimestampType.CREATE_TIME,
        "LogAppendTime": TimestampType.LOG_APPEND_TIME,
    }
)


class TopicValues:
    """The effective values of one topic's keys; a value that is invalid is its default."""

    def __init__(self, name: str, configs: ConfigsImage, layers: BrokerConfigLayers) -> None:
        self._texts = configs.of(ResourceType.TOPIC, name)
        self._layers = layers

    def integer(self, key: str) -> int:
        """Return the value of a key whose type is int or long."""
        value = self._value(key)
        assert isinstance(value, int)
        return value

    def optional_integer(self, key: str) -> int | None:
        """Return the value of a key that has none by default."""
        value = self._value(key)
        return value if isinstance(value, int) else None

    def ratio(self, key: str) -> float:
        """Return the value of a key whose type is double."""
        value = self._value(key)
        assert isinstance(value, float)
        return value

    def text(self, key: str) -> str:
        """Return the value of a key whose type is string."""
        value = self._value(key)
        assert isinstance(value, str)
        return value

    def names(self, key: str) -> frozenset[str]:
        """Return the values of a key whose type is list."""
        value = self._value(key)
        assert isinstance(value, tuple)
        return frozenset(map(str, cast("tuple[object, ...]", value)))

    def _value(self, key: str) -> object:
        found = effective_topic_config(key, self._texts, self._layers)
        try:
            return parse_value(found.definition, found.value)
        except InvalidConfigError:
            default = effective_topic_config(key, {}, BrokerConfigLayers())
            return parse_value(default.definition, default.value)


class TopicConfigs:
    """Finds a topic's values: its own, those of this broker, of all brokers, of its properties."""

    def __init__(self, broker_id: int, texts: Mapping[str, str]) -> None:
        self._broker_id = broker_id
        self._texts = texts

    def values(self, topic: str, image: MetadataImage) -> TopicValues:
        """Return the values of one topic."""
        return TopicValues(topic, image.configs, self._layers(image))

    def changed(
        self, before: MetadataImage, image: MetadataImage, topics: Iterable[str]
    ) -> dict[str, TopicValues]:
        """Return the values of those topics whose values may have changed."""
        if image.configs is before.configs:
            return {}
        are_all_concerned = self._layers(before) != self._layers(image)
        return {
            topic: self.values(topic, image)
            for topic in topics
            if are_all_concerned
            or before.configs.of(ResourceType.TOPIC, topic)
            != image.configs.of(ResourceType.TOPIC, topic)
        }

    def _layers(self, image: MetadataImage) -> BrokerConfigLayers:
        return config_layers(image.configs, node_id=self._broker_id, texts=self._texts)


def topic_log_config(values: TopicValues) -> TopicLogConfig:
    """Return the settings of a topic's logs.

    A batch that the topic takes as it is may also be sent packed, up to what the readers of stored
    batches unpack.
    """
    max_message_bytes = values.integer("max.message.bytes")
    record_bytes_max = values.integer("max.decompressed.message.bytes")
    policies = values.names("cleanup.policy")
    is_compacted = "compact" in policies
    segment_ms = values.integer("segment.ms")
    if is_compacted:
        segment_ms = min(segment_ms, values.integer("max.compaction.lag.ms"))
    return TopicLogConfig(
        segments=LogConfig(
            segment_bytes=values.optional_integer("internal.segment.bytes")
            or values.integer("segment.bytes"),
            segment_ms=segment_ms,
            is_flushed_on_roll=False,
            may_have_gaps=True,
            delete_delay_ms=values.integer("file.delete.delay.ms"),
            index_interval_bytes=values.integer("index.interval.bytes"),
            index_size_bytes_max=values.integer("segment.index.bytes"),
        ),
        rules=RecordRules(
            timestamp_before_max_ms=values.integer("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=values.integer("message.timestamp.after.max.ms"),
            timestamp_type=_TIMESTAMP_TYPES[values.text("message.timestamp.type")],
            compression=_COMPRESSIONS[values.text("compression.type")],
            is_compacted=is_compacted,
            unpacked_bytes_max=min(
                max(DECOMPRESSED_BYTES_MAX, max_message_bytes), STORED_UNPACKED_BYTES_MAX
            ),
            record_bytes_max=record_bytes_max,
        ),
        max_message_bytes=max_message_bytes,
        cleanup=CleanupConfig(
            is_compacted=is_compacted,
            is_deleted="delete" in policies,
            min_cleanable_dirty_ratio=values.ratio("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms=values.integer("min.compaction.lag.ms"),
            max_compaction_lag_ms=values.integer("max.compaction.lag.ms"),
            delete_retention_ms=values.integer("delete.retention.ms"),
            record_bytes_max=record_bytes_max,
            retention_ms=values.integer("retention.ms"),
            retention_bytes=values.integer("retention.bytes"),
        ),
        segment_jitter_ms=values.integer("segment.jitter.ms"),
        flush_messages=values.integer("flush.messages"),
    )


def min_insync_replicas(values: TopicValues) -> int:
    """Return how many replicas must be in sync for a write with ``acks=all``."""
    return values.integer(MIN_INSYNC_REPLICAS)

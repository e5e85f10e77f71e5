"""The settings of a topic's logs (Kafka's LogConfig)."""

from dataclasses import dataclass
from typing import Annotated

from kvorum.storage.cleaner.cleanup_config import CleanupConfig, names_compaction
from kvorum.storage.log.log_config import DAY_MS, LogConfig
from kvorum.storage.topic_log.log_validator import RecordRules


def _segment_ms(segment_ms: int, policies: tuple[str, ...], compaction_lag_ms_max: int) -> int:
    return min(segment_ms, compaction_lag_ms_max) if names_compaction(policies) else segment_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSegmentConfig(LogConfig):
    """The settings that the log of any partition has, with the keys of a topic.

    What is deleted is in `CleanupConfig`.
    """

    segment_bytes: Annotated[int, "internal.segment.bytes", "segment.bytes"] = 1024 * 1024 * 1024
    segment_ms: Annotated[
        int, "segment.ms", "cleanup.policy", "max.compaction.lag.ms", _segment_ms
    ] = 7 * DAY_MS
    delete_delay_ms: Annotated[int, "file.delete.delay.ms"] = 60_000
    index_interval_bytes: Annotated[int, "index.interval.bytes"] = 4096
    index_size_bytes_max: Annotated[int, "segment.index.bytes"] = 10 * 1024 * 1024
    retention_bytes: int = -1
    retention_ms: int = -1
    is_flushed_on_roll: bool = False
    may_have_gaps: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLogConfig:
    """The rules for the logs of one topic and for its records.

    `segments` has the settings that the log of any partition has; `max_message_bytes` is the
    largest batch that a producer may send.
    """

    segments: TopicSegmentConfig
    rules: RecordRules
    max_message_bytes: Annotated[int, "max.message.bytes"]
    cleanup: CleanupConfig
    segment_jitter_ms: Annotated[int, "segment.jitter.ms"] = 0
    """The time by which a segment may be closed earlier than after segment.ms."""

    flush_messages: Annotated[int, "flush.messages"] = 2**63 - 1
    """The number of records that are not durable at which an append makes all so."""

    @property
    def may_delete_records(self) -> bool:
        """Whether DeleteRecords is allowed: not where the topic is only compacted."""
        return self.cleanup.is_deleted or not self.cleanup.is_compacted

"""The settings of a topic's logs (Kafka's LogConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.topic_log.log_validator import RecordRules


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLogConfig:
    """The rules for the logs of one topic and for its records.

    `segments` has the settings that the log of any partition has; `max_message_bytes` is the
    largest batch that a producer may send.
    """

    segments: LogConfig
    rules: RecordRules
    max_message_bytes: int
    cleanup: CleanupConfig
    segment_jitter_ms: int = 0
    """segment.jitter.ms: how much earlier than after segment.ms a segment may be closed."""

    flush_messages: int = 2**63 - 1
    """flush.messages: after how many records that are not durable an append makes all so."""

    @property
    def may_delete_records(self) -> bool:
        """Whether DeleteRecords is allowed: not where the topic is only compacted."""
        return self.cleanup.is_deleted or not self.cleanup.is_compacted

"""The settings of a topic's logs (Kafka's LogConfig)."""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.storage.log_config import LogConfig
from kvorum.storage.log_validator import RecordRules


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLogConfig:
    """What the logs of one topic are kept by, and its records held to.

    `segments` has the settings that the log of any partition has; `max_message_bytes` is the
    largest batch that a producer may send.
    """

    segments: LogConfig
    rules: RecordRules
    max_message_bytes: int
    may_delete_records: bool
    """Whether cleanup.policy contains ``delete``, or nothing."""

"""The isolation of a fetch, which bounds how much of a log it reads (Kafka's FetchIsolation)."""

from enum import Enum

from kvorum.storage.topic_log.unified_log import UnifiedLog


class IsolationLevel(Enum):
    """Which records a consumer sees: all committed ones, or those of no open transaction."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


def readable_end(log: UnifiedLog, isolation: IsolationLevel | None) -> int:
    """Return the offset up to which a consumer may read, or without an isolation a replica."""
    if isolation is None:
        return log.stored_end_offset
    is_committed = isolation is IsolationLevel.READ_COMMITTED
    return log.last_stable_offset if is_committed else log.high_watermark

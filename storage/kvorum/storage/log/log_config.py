"""The settings of a partition's log: the keys and defaults of the metadata log."""

from dataclasses import dataclass
from typing import Annotated

DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings of one log; those of a topic are a `TopicSegmentConfig`."""

    segment_bytes: Annotated[
        int, "internal.metadata.log.segment.bytes", "metadata.log.segment.bytes"
    ] = 1024 * 1024 * 1024
    """Begin a new segment before this size is passed."""

    segment_ms: Annotated[int, "metadata.log.segment.ms"] = 7 * DAY_MS
    """Begin a new segment once batches lie further apart than this."""

    retention_bytes: Annotated[int, "metadata.max.retention.bytes"] = 100 * 1024 * 1024
    """The size of log and snapshots together; negative is not a limit."""

    retention_ms: Annotated[int, "metadata.max.retention.ms"] = 7 * DAY_MS
    """The age from which a snapshot may go; negative is not a limit."""

    delete_delay_ms: Annotated[int, "internal.metadata.delete.delay.millis"] = 60_000
    """The time for which a file that was renamed to ``*.deleted`` is kept."""

    index_interval_bytes: int = 4096
    """The bytes of batches between two index entries."""

    index_size_bytes_max: int = 10 * 1024 * 1024
    """The size of an index file at which a new segment begins."""

    is_flushed_on_roll: bool = True
    """Whether a segment is made durable before the next one begins; else the next flush does it."""

    may_have_gaps: bool = False
    """Whether offsets may be missing between batches, as compaction leaves a topic's log."""

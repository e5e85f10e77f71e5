"""The settings of a metadata log, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings of one metadata log."""

    segment_bytes: int = 1024 * 1024 * 1024
    """metadata.log.segment.bytes: begin a new segment before this size is passed."""

    segment_ms: int = 7 * _DAY_MS
    """metadata.log.segment.ms: begin a new segment once batches lie further apart than this."""

    retention_bytes: int = 100 * 1024 * 1024
    """metadata.max.retention.bytes: for log and snapshots together; negative is not a limit."""

    retention_ms: int = 7 * _DAY_MS
    """metadata.max.retention.ms: age from which a snapshot may go; negative is not a limit."""

    delete_delay_ms: int = 60_000
    """file.delete.delay.ms: how long a file that was renamed to ``*.deleted`` is kept."""

    index_interval_bytes: int = 4096
    """The bytes of batches between two index entries."""

    index_size_bytes_max: int = 10 * 1024 * 1024
    """The size of an index file at which a new segment begins."""

    is_flushed_on_roll: bool = True
    """Whether a segment is made durable before the next one begins; else the next flush does it."""

    may_have_gaps: bool = False
    """Whether offsets may be missing between batches, as compaction leaves a topic's log."""

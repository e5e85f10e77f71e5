"""The settings of a topic for the cleaning of its logs, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.wire.records.compression import RECORD_BYTES_MAX

_DAY_MS = 24 * 60 * 60 * 1000
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupConfig:
    """The settings of one topic for compaction and for the deletion of old segments."""

    is_compacted: bool = False
    """cleanup.policy contains compact."""

    is_deleted: bool = True
    """cleanup.policy contains delete."""

    min_cleanable_dirty_ratio: float = 0.5
    """Compact once a greater part than this of the log is dirty, from 0 to 1."""

    min_compaction_lag_ms: int = 0
    """The shortest time for which a record stays as it is."""

    max_compaction_lag_ms: int = _INT64_MAX
    """The longest time for which a record stays as it is."""

    delete_retention_ms: int = _DAY_MS
    """The time for which tombstones stay after the pass of the cleaner that met them."""

    record_bytes_max: int = RECORD_BYTES_MAX
    """max.decompressed.message.bytes: the log is not compacted where a packed record is larger."""

    retention_ms: int = 7 * _DAY_MS
    """The age from which segments go; negative is not a limit."""

    retention_bytes: int = -1
    """The size that a log is not cut below; negative is not a limit."""

"""The settings of a topic for the cleaning of its logs, with Kafka's defaults."""

from dataclasses import dataclass
from typing import Annotated

from kvorum.wire.records.decompression import RECORD_BYTES_MAX

_DAY_MS = 24 * 60 * 60 * 1000
_INT64_MAX = 2**63 - 1


def names_compaction(policies: tuple[str, ...]) -> bool:
    """Return whether a cleanup.policy contains compact."""
    return "compact" in policies


def names_deletion(policies: tuple[str, ...]) -> bool:
    """Return whether a cleanup.policy contains delete."""
    return "delete" in policies


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupConfig:
    """The settings of one topic for compaction and for the deletion of old segments."""

    is_compacted: Annotated[bool, "cleanup.policy", names_compaction] = False
    is_deleted: Annotated[bool, "cleanup.policy", names_deletion] = True
    min_cleanable_dirty_ratio: Annotated[float, "min.cleanable.dirty.ratio"] = 0.5
    """Compact once a greater part than this of the log is dirty, from 0 to 1."""

    min_compaction_lag_ms: Annotated[int, "min.compaction.lag.ms"] = 0
    """The shortest time for which a record stays as it is."""

    max_compaction_lag_ms: Annotated[int, "max.compaction.lag.ms"] = _INT64_MAX
    """The longest time for which a record stays as it is."""

    delete_retention_ms: Annotated[int, "delete.retention.ms"] = _DAY_MS
    """The time for which tombstones stay after the pass of the cleaner that met them."""

    record_bytes_max: Annotated[int, "max.decompressed.message.bytes"] = RECORD_BYTES_MAX
    """The log is not compacted where a packed record is larger."""

    retention_ms: Annotated[int, "retention.ms"] = 7 * _DAY_MS
    """The age from which segments go; negative is not a limit."""

    retention_bytes: Annotated[int, "retention.bytes"] = -1
    """The size that a log is not cut below; negative is not a limit."""

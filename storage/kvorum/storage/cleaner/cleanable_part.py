"""The part of a log that a cleaner may clean, and how much of it is dirty (Kafka's LogToClean).

Clean is what lies below the checkpoint of the cleaner, dirty what lies above it. Not cleaned are
the active segment, what is not stable yet, and segments with a record that is younger than
min.compaction.lag.ms; nor is anything behind these.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.log.segment import Segment
from kvorum.storage.log.segment_list import segments_between


class CleanablePart(NamedTuple):
    """A log by offsets and bytes, as a cleaner sees it."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base offset of the first segment that is not cleaned."""

    is_checkpoint_wrong: bool
    """The checkpoint lay outside the log and must be replaced by the first dirty offset."""

    clean_bytes: int
    cleanable_bytes: int
    """The size of the segments that are dirty and may be cleaned."""

    overdue_ms: int
    """For how long a record has been dirty beyond max.compaction.lag.ms; 0 for none."""

    @property
    def total_bytes(self) -> int:
        """The size of the clean and of the cleanable segments."""
        return self.clean_bytes + self.cleanable_bytes

    @property
    def ratio(self) -> float:
        """The part of these bytes that is dirty, 0 without any."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    def is_due(self, config: CleanupConfig) -> bool:
        """Return whether the log is dirty enough, or has been dirty for too long."""
        is_overdue = self.overdue_ms > 0 and self.cleanable_bytes > 0
        return is_overdue or self.ratio > config.min_cleanable_dirty_ratio


def cleanable_part(
    log: SharedLog,
    config: CleanupConfig,
    *,
    checkpoint: int | None,
    last_stable_offset: int,
    now_ms: int,
) -> CleanablePart:
    """Return the part of a log that may be cleaned, after the cleaner has come to `checkpoint`.

    The last stable offset is not above the high watermark (KAFKA-13194). A checkpoint outside the
    log makes all of it dirty (KAFKA-8764, KAFKA-9133).
    """
    start_offset = log.log_start_offset
    is_wrong = checkpoint is not None and not start_offset <= checkpoint <= log.log_end_offset
    first_dirty = start_offset if checkpoint is None or is_wrong else checkpoint
    segments = log.segments
    dirty = _inactive_from(segments, first_dirty)
    bounds = [last_stable_offset, segments[-1].base_offset]
    if config.min_compaction_lag_ms > 0:
        youngest = now_ms - config.min_compaction_lag_ms
        bounds += [one.base_offset for one in dirty if one.largest_timestamp > youngest][:1]
    first_uncleanable = _segment_base(segments, max(first_dirty, min(bounds)))
    cleanable = segments_between(segments, min(first_dirty, first_uncleanable), first_uncleanable)
    return CleanablePart(
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=first_uncleanable,
        is_checkpoint_wrong=is_wrong,
        clean_bytes=sum(one.size for one in segments if one.base_offset < first_dirty),
        cleanable_bytes=sum(one.size for one in cleanable),
        overdue_ms=_overdue_ms(dirty, config, now_ms),
    )


def _inactive_from(segments: Sequence[Segment], offset: int) -> list[Segment]:
    """Return the segments from the one that holds `offset` on, without the active one."""
    return segments_between(segments, offset, segments[-1].base_offset)


def _segment_base(segments: Sequence[Segment], offset: int) -> int:
    """Return the base of the segment that holds `offset`."""
    inactive = _inactive_from(segments, offset)
    return (inactive[0] if inactive else segments[-1]).base_offset


def _overdue_ms(dirty: Sequence[Segment], config: CleanupConfig, now_ms: int) -> int:
    timestamps = [one.first_timestamp for one in dirty if one.first_timestamp > 0]
    clean_until = now_ms - max(config.max_compaction_lag_ms, 0)
    return max(0, clean_until - min(timestamps)) if timestamps else 0

"""The removal of a topic log's old segments, by its start, its size and its age.

Whole segments go, the oldest first, and never what the high watermark has not passed. A log that is
only compacted loses no more than what lies below its start (KAFKA-7400). If all segments are to go,
a new one is begun first. Counterpart of Kafka's UnifiedLog.deleteOldSegments.
"""

from collections.abc import Callable
from typing import TypeAlias

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.segment import Segment

_ShouldGo: TypeAlias = Callable[[Segment, Segment | None], bool]


def delete_old_segments(
    log: LocalLog, config: CleanupConfig, *, high_watermark: int, now_ms: int
) -> int:
    """Remove the segments that need not be kept; return their number.

    The log then starts at the first one that is left. `now_ms` is the wall clock.
    """
    start_offset = log.log_start_offset

    def lies_below_start(_: Segment, after: Segment | None) -> bool:
        return after is not None and after.base_offset <= start_offset

    count = _delete_while(log, lies_below_start, high_watermark, now_ms)
    if not config.is_deleted:
        return count
    excess = log.size_bytes - config.retention_bytes

    def is_too_much(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess
        excess -= segment.size
        return excess >= 0

    def is_too_old(segment: Segment, _: Segment | None) -> bool:
        return segment.largest_timestamp < now_ms - config.retention_ms

    if 0 <= config.retention_bytes <= log.size_bytes:
        count += _delete_while(log, is_too_much, high_watermark, now_ms)
    if config.retention_ms >= 0:
        count += _delete_while(log, is_too_old, high_watermark, now_ms)
    return count


def _delete_while(log: LocalLog, should_go: _ShouldGo, high_watermark: int, now_ms: int) -> int:
    """Remove the oldest segments as long as they should go; return their number."""
    segments = log.segments
    count = 0
    for segment, after in zip(segments, (*segments[1:], None), strict=True):
        end_offset = log.log_end_offset if after is None else after.base_offset
        is_empty_and_active = after is None and segment.size == 0
        if high_watermark < end_offset or not should_go(segment, after) or is_empty_and_active:
            break
        count += 1
    if count == 0:
        return 0
    if count == len(segments):
        log.roll(now_ms=now_ms)
    first_left = log.segments[count].base_offset
    log.increment_log_start_offset(max(first_left, log.log_start_offset), now_ms=now_ms)
    return count

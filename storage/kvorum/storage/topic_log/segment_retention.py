"""The removal of a topic log's old segments, by its start, its size and its age.

Whole segments go, the oldest first, and never what the high watermark has not passed. A log that is
only compacted loses no more than what lies below its start (KAFKA-7400). If all segments are to go,
a new one is begun first. Counterpart of Kafka's UnifiedLog.deleteOldSegments.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.segment import Segment

_ShouldGo: TypeAlias = Callable[[Segment, Segment | None], bool]


class ShrinkableLog(Protocol):
    """A log as far as retention needs it; `LocalLog` is one."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last one is active."""
        ...

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record that may be read."""
        ...

    @property
    def log_end_offset(self) -> int:
        """One more than the offset of the last record."""
        ...

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        ...

    def roll(self, *, now_ms: int | None = None) -> None:
        """Begin a new segment at the end of the log, unless the active one is empty."""
        ...

    def increment_log_start_offset(self, offset: int, *, now_ms: int) -> int:
        """Delete the records below `offset`; return the number of whole segments removed."""
        ...


def delete_old_segments(
    log: ShrinkableLog, config: CleanupConfig, *, high_watermark: int, now_ms: int
) -> int:
    """Remove the segments that need not be kept; return their number.

    The log then starts at the first one that is left. `now_ms` is the wall clock.
    """
    count = _delete_while(log, _lies_below_start(log), high_watermark, now_ms)
    if config.is_deleted:
        if 0 <= config.retention_bytes <= log.size_bytes:
            too_much = _Excess(log.size_bytes - config.retention_bytes).includes
            count += _delete_while(log, too_much, high_watermark, now_ms)
        if config.retention_ms >= 0:
            too_old = _is_older_than(now_ms - config.retention_ms)
            count += _delete_while(log, too_old, high_watermark, now_ms)
    return count


def _lies_below_start(log: ShrinkableLog) -> _ShouldGo:
    start_offset = log.log_start_offset
    return lambda _, after: after is not None and after.base_offset <= start_offset


def _is_older_than(time_ms: int) -> _ShouldGo:
    return lambda segment, _: segment.largest_timestamp < time_ms


class _Excess:
    """The bytes by which a log is too large; it is not cut below its limit."""

    def __init__(self, size: int) -> None:
        self._left = size

    def includes(self, segment: Segment, _: Segment | None) -> bool:
        """Return whether a segment may go, and count it."""
        if segment.size > self._left:
            return False
        self._left -= segment.size
        return True


def _delete_while(
    log: ShrinkableLog, should_go: _ShouldGo, high_watermark: int, now_ms: int
) -> int:
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

"""The choice of the next log to clean, how far each one is clean, and those to leave alone.

Counterpart of Kafka's LogCleanerManager for one log directory and one thread. Kafka's states and
pauses keep its cleaner away from logs that others change. Here a pass notices a change when it is
about to put a segment in place (`SharedLog`), and one thread does one pass after the other.
"""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvorum.storage.cleaner.batch_filter import LastRecord
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.errors import CorruptFileError, UnknownVersionError
from kvorum.storage.log.segment import Segment
from kvorum.storage.log.segment_list import segments_between
from kvorum.storage.small_files.offset_checkpoint_file import OffsetCheckpointFile
from kvorum.storage.topic_partition import TopicPartition


class CleanablePart(NamedTuple):
    """A log by offsets and bytes, as a cleaner sees it.

    Clean is what lies below the checkpoint of the cleaner, dirty what lies above it. Not cleaned
    are the active segment, what is not stable yet, and segments with a record that is younger than
    min.compaction.lag.ms; nor is anything behind these.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedLog:
    """A log of the directory, with what the cleaner asks of it at the moment."""

    log: SharedLog
    config: CleanupConfig
    high_watermark: int
    last_stable_offset: int
    """Not above the high watermark."""

    truncated_to: int | None
    """The lowest offset that the log was truncated to since the last round, if it was."""

    last_records: Mapping[int, LastRecord]
    """The last records of the active producers (`batch_filter.last_records`)."""

    is_paused: bool = False
    """Whether the log is left alone for now, because its replica moves to another directory."""


class LogToClean(NamedTuple):
    """A log that was chosen, and the part of it that may be cleaned."""

    partition: TopicPartition
    hosted: HostedLog
    part: CleanablePart


class LogCleanerManager:
    """The choice of a log, and the checkpoint of one log directory."""

    def __init__(
        self, checkpoint: OffsetCheckpointFile, hosted: Callable[[], Container[TopicPartition]]
    ) -> None:
        """`hosted` returns the partitions of the directory, compacted or not; in any thread."""
        self._checkpoint = checkpoint
        self._hosted = hosted
        self._uncleanable: set[TopicPartition] = set()
        self.max_dirty_ratio = 0.0
        """The highest part of a log that was dirty at the last choice, from 0 to 1."""

    @property
    def uncleanable(self) -> frozenset[TopicPartition]:
        """The partitions that are not cleaned any more, because a pass failed on their data."""
        return frozenset(self._uncleanable)

    def cleaned_offsets(self) -> dict[TopicPartition, int]:
        """Return how far each log is clean. A checkpoint that cannot be read says nothing."""
        try:
            return self._checkpoint.read()
        except (CorruptFileError, UnknownVersionError):
            return {}

    def grab_filthiest(
        self, logs: Mapping[TopicPartition, HostedLog], *, now_ms: int
    ) -> LogToClean | None:
        """Choose the log with the greatest dirty part.

        None where no log is dirty enough or overdue. A checkpoint outside its log is replaced.
        """
        for partition, hosted in logs.items():
            if hosted.truncated_to is not None:
                self._truncate_checkpoint(partition, hosted.truncated_to)
        cleaned = self.cleaned_offsets()
        dirty: list[LogToClean] = []
        for partition, hosted in logs.items():
            is_left_alone = hosted.is_paused or partition in self._uncleanable
            if is_left_alone or not hosted.config.is_compacted:
                continue
            part = cleanable_part(
                hosted.log,
                hosted.config,
                checkpoint=cleaned.get(partition),
                last_stable_offset=hosted.last_stable_offset,
                now_ms=now_ms,
            )
            if part.is_checkpoint_wrong:
                self.update_checkpoint(partition, part.first_dirty_offset)
            if part.total_bytes > 0:
                dirty.append(LogToClean(partition, hosted, part))
        self.max_dirty_ratio = max((one.part.ratio for one in dirty), default=0.0)
        due = [one for one in dirty if one.part.is_due(one.hosted.config)]
        if not due:
            return None
        return max(due, key=lambda one: one.part.ratio)

    def mark_uncleanable(self, partition: TopicPartition) -> None:
        """Leave a partition alone until the next start: a pass failed on its data."""
        self._uncleanable.add(partition)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that were deleted or moved away."""
        self._uncleanable.difference_update(partitions)
        cleaned = self.cleaned_offsets()
        self._store({one: end for one, end in cleaned.items() if one not in partitions})

    def _truncate_checkpoint(self, partition: TopicPartition, offset: int) -> None:
        """Lower how far a log is clean, because it was truncated to `offset`."""
        cleaned = self.cleaned_offsets()
        if cleaned.get(partition, 0) > offset:
            self._checkpoint.write({**cleaned, partition: offset})

    def update_checkpoint(self, partition: TopicPartition, offset: int) -> None:
        """Store how far a log is clean."""
        self._store({**self.cleaned_offsets(), partition: offset})

    def _store(self, cleaned: Mapping[TopicPartition, int]) -> None:
        """Store how far logs are clean, without those that are gone."""
        hosted = self._hosted()
        self._checkpoint.write({one: end for one, end in cleaned.items() if one in hosted})

"""The choice of the next log to clean, how far each one is clean, and those to leave alone.

Counterpart of Kafka's LogCleanerManager for one log directory and one thread. Kafka's states and
pauses keep its cleaner away from logs that others change. Here a pass notices a change when it is
about to put a segment in place (`SharedLog`), and one thread does one pass after the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kvorum.storage.cleaner.batch_filter import LastRecord
from kvorum.storage.cleaner.cleanable_part import CleanablePart, cleanable_part
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.errors import CorruptFileError, UnknownVersionError
from kvorum.storage.small_files.offset_checkpoint_file import OffsetCheckpointFile
from kvorum.storage.topic_partition import TopicPartition


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

    def __init__(self, checkpoint: OffsetCheckpointFile) -> None:
        self._checkpoint = checkpoint
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
                self.update_checkpoint(logs, partition, part.first_dirty_offset)
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

    def forget(self, logs: Mapping[TopicPartition, HostedLog], partition: TopicPartition) -> None:
        """Forget a partition that was deleted or moved away."""
        self._uncleanable.discard(partition)
        self.update_checkpoint(logs, partition, None)

    def _truncate_checkpoint(self, partition: TopicPartition, offset: int) -> None:
        """Lower how far a log is clean, because it was truncated to `offset`."""
        cleaned = self.cleaned_offsets()
        if cleaned.get(partition, 0) > offset:
            self._checkpoint.write({**cleaned, partition: offset})

    def update_checkpoint(
        self,
        logs: Mapping[TopicPartition, HostedLog],
        partition: TopicPartition,
        offset: int | None,
    ) -> None:
        """Store how far a log is clean, None for nothing known; logs that are gone are dropped."""
        cleaned = {one: end for one, end in self.cleaned_offsets().items() if one in logs}
        cleaned.pop(partition, None)
        if offset is not None:
            cleaned[partition] = offset
        self._checkpoint.write(cleaned)

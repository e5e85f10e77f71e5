"""Which log is cleaned next, how far each one is clean, and which ones must be left alone.

Counterpart of Kafka's LogCleanerManager for one log directory. A partition has no state as long as
nothing happens to it, and else one of these::

    (none) ──grab──▶ in progress ──done──▶ (none)
    in progress ──abort and pause──▶ aborted ──done──▶ paused once
    (none) or paused ──abort and pause──▶ paused once more
    paused ──resume──▶ paused once less, or (none)

Nothing here waits: `abort_and_pause` says whether the partition is paused already, and if not it is
once the running pass has noticed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.storage.batch_filter import LastRecord
from kvorum.storage.cleanable_part import CleanablePart, cleanable_part
from kvorum.storage.cleanup_config import CleanupConfig
from kvorum.storage.errors import CleaningAbortedError, CorruptFileError, UnknownVersionError
from kvorum.storage.offset_checkpoint_file import OffsetCheckpointFile
from kvorum.storage.partition_log import PartitionLog
from kvorum.storage.topic_partition import TopicPartition

_IN_PROGRESS: Final = -1
_ABORTED: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedLog:
    """A log of the directory, with what the cleaner asks of it at the moment."""

    log: PartitionLog
    config: CleanupConfig
    high_watermark: int
    last_stable_offset: int
    """Not above the high watermark."""

    last_records: Mapping[int, LastRecord]
    """The last records of the active producers (`batch_filter.last_records`)."""


class LogToClean(NamedTuple):
    """A log that was chosen, and the part of it that may be cleaned."""

    partition: TopicPartition
    hosted: HostedLog
    part: CleanablePart


class LogCleanerManager:
    """The states and the checkpoint of one log directory."""

    def __init__(self, checkpoint: OffsetCheckpointFile) -> None:
        self._checkpoint = checkpoint
        # In progress, aborted, or how many times the partition is paused.
        self._states: dict[TopicPartition, int] = {}
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
        """Choose the log with the greatest dirty part, and note that it is in progress.

        None where no log is dirty enough or overdue. A checkpoint outside its log is replaced.
        """
        cleaned = self.cleaned_offsets()
        dirty: list[LogToClean] = []
        for partition, hosted in logs.items():
            if not self._may_be_cleaned(partition, hosted):
                continue
            part = cleanable_part(
                hosted.log,
                hosted.config,
                checkpoint=cleaned.get(partition),
                last_stable_offset=hosted.last_stable_offset,
                now_ms=now_ms,
            )
            if part.is_checkpoint_wrong:
                self._note(logs, partition, part.first_dirty_offset)
            if part.total_bytes > 0:
                dirty.append(LogToClean(partition, hosted, part))
        self.max_dirty_ratio = max((one.part.ratio for one in dirty), default=0.0)
        due = [one for one in dirty if one.part.is_due(one.hosted.config)]
        if not due:
            return None
        filthiest = max(due, key=lambda one: one.part.ratio)
        self._states[filthiest.partition] = _IN_PROGRESS
        return filthiest

    def grab_deletable(self, logs: Mapping[TopicPartition, HostedLog]) -> list[TopicPartition]:
        """Return the compacted logs whose old segments may go; they are then in progress."""
        found = [one for one, hosted in logs.items() if self._may_be_cleaned(one, hosted)]
        self._states.update(dict.fromkeys(found, _IN_PROGRESS))
        return found

    def pause_others(self, logs: Mapping[TopicPartition, HostedLog]) -> list[TopicPartition]:
        """Pause and return the logs that are not compacted, for the task that deletes segments.

        A change of cleanup.policy cannot let the cleaner begin meanwhile.
        """
        found = [
            partition
            for partition, hosted in logs.items()
            if not hosted.config.is_compacted and partition not in self._states
        ]
        self._states.update(dict.fromkeys(found, 1))
        return found

    def _may_be_cleaned(self, partition: TopicPartition, hosted: HostedLog) -> bool:
        is_free = partition not in self._states and partition not in self._uncleanable
        return is_free and hosted.config.is_compacted

    def done_cleaning(
        self, logs: Mapping[TopicPartition, HostedLog], partition: TopicPartition, end_offset: int
    ) -> None:
        """Note that a pass has ended and, unless it was aborted, how far the log is clean."""
        if self._states[partition] == _IN_PROGRESS:
            self._note(logs, partition, end_offset)
        self.done_deleting(partition)

    def done_deleting(self, partition: TopicPartition) -> None:
        """Note that a partition is not in progress any more."""
        state = self._states.pop(partition)
        if state == _ABORTED:
            self._states[partition] = 1
        elif state != _IN_PROGRESS:
            raise ValueError(f"{partition} is not in progress")

    def abort_and_pause(self, partition: TopicPartition) -> bool:
        """Keep the cleaner off a partition; return whether nothing is in progress any more."""
        state = self._states.get(partition, 0)
        self._states[partition] = _ABORTED if state < 0 else state + 1
        return self.is_paused(partition)

    def is_paused(self, partition: TopicPartition) -> bool:
        """Return whether the cleaner is kept off a partition, and has left it."""
        return self._states.get(partition, 0) > 0

    def resume(self, partition: TopicPartition) -> None:
        """Take one pause back. Raises ValueError for a partition that is not paused."""
        state = self._states.pop(partition, 0)
        if state <= 0:
            raise ValueError(f"{partition} is not paused")
        if state > 1:
            self._states[partition] = state - 1

    def check_aborted(self, partition: TopicPartition) -> None:
        """Raise CleaningAbortedError if the pass over a partition is to end."""
        if self._states.get(partition) == _ABORTED:
            raise CleaningAbortedError(f"the cleaning of {partition} is to end")

    def mark_uncleanable(self, partition: TopicPartition) -> None:
        """Leave a partition alone until the next start: a pass failed on its data."""
        self._uncleanable.add(partition)

    def forget(self, logs: Mapping[TopicPartition, HostedLog], partition: TopicPartition) -> None:
        """Forget a partition that was deleted or moved away; pauses stay until they are resumed."""
        self._uncleanable.discard(partition)
        self._note(logs, partition, None)

    def truncate_checkpoint(self, partition: TopicPartition, offset: int) -> None:
        """Lower how far a log is clean, because it was truncated to `offset`."""
        cleaned = self.cleaned_offsets()
        if cleaned.get(partition, 0) > offset:
            self._checkpoint.write({**cleaned, partition: offset})

    def _note(
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

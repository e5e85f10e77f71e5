"""The work of a cleaner's round on one log directory: the filthiest log is cleaned.

Counterpart of Kafka's LogCleaner without its threads: the caller decides when, and passes the wall
clock. One thread does all rounds of a directory; the owners of the logs go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from kvorum.storage.cleaner.cleaner import Cleaner, Pass
from kvorum.storage.cleaner.log_cleaner_manager import HostedLog, LogCleanerManager, LogToClean
from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.errors import CleaningAbortedError, DiskError, PoisonedError, StorageError
from kvorum.storage.files import FileSystem
from kvorum.storage.topic_partition import TopicPartition


class CleanedLog(NamedTuple):
    """A log that a pass went over: how far it is clean, or why it could not be cleaned."""

    partition: TopicPartition
    end_offset: int | None
    """A pass that ended early has None."""

    problem: StorageError | None = None
    """The failure that made the log uncleanable."""


class LogCleaner:
    """Cleans the logs of one directory, one at a time."""

    def __init__(
        self, manager: LogCleanerManager, offset_map: OffsetMap, files: FileSystem
    ) -> None:
        self._manager = manager
        self._map = offset_map
        self._files = files
        self._aborted: set[TopicPartition] = set()

    def abort_cleaning(self, partition: TopicPartition) -> None:
        """End a running pass over a partition soon, and begin none; any thread may call this.

        That holds until `resume_cleaning` or `forget`.
        """
        self._aborted.add(partition)

    def is_aborted(self, partition: TopicPartition) -> bool:
        """Return whether no pass over a partition may run."""
        return partition in self._aborted

    def resume_cleaning(self, partition: TopicPartition) -> None:
        """Allow passes over a partition again, after one was aborted."""
        self._aborted.discard(partition)

    def alter_checkpoint_dir(
        self,
        others: Mapping[TopicPartition, HostedLog],
        partition: TopicPartition,
        target: LogCleaner,
        target_logs: Mapping[TopicPartition, HostedLog],
    ) -> None:
        """Pass what is known of a partition on to the directory that it has moved to.

        `others` are the logs that stay here, `target_logs` those of the other directory.
        """
        offset = self._manager.cleaned_offsets().get(partition)
        self.forget(others, partition)
        if offset is not None:
            target._manager.update_checkpoint(target_logs, partition, offset)

    def forget(self, logs: Mapping[TopicPartition, HostedLog], partition: TopicPartition) -> None:
        """Forget a partition that is gone, whose passes were aborted before."""
        self._aborted.discard(partition)
        self._manager.forget(logs, partition)

    def clean_filthiest(
        self, logs: Mapping[TopicPartition, HostedLog], *, now_ms: int
    ) -> CleanedLog | None:
        """Clean the log with the greatest dirty part; None where none is to be cleaned.

        Data that cannot be read makes its log uncleanable. Raises DiskError and PoisonedError.
        """
        # A partition that goes away may still be among the logs: its directory may be renamed now.
        aborted = [partition for partition in tuple(self._aborted) if partition in logs]
        paused = {partition: replace(logs[partition], is_paused=True) for partition in aborted}
        chosen = self._manager.grab_filthiest({**logs, **paused}, now_ms=now_ms)
        if chosen is None:
            return None
        try:
            end_offset = self._clean(chosen, now_ms)
        except CleaningAbortedError:
            return CleanedLog(chosen.partition, None)
        except StorageError as problem:
            if chosen.hosted.log.has_changed:
                # Its files were cut or closed while they were read.
                return CleanedLog(chosen.partition, None)
            if isinstance(problem, DiskError | PoisonedError):
                raise
            self._manager.mark_uncleanable(chosen.partition)
            first_dirty = chosen.part.first_dirty_offset
            self._manager.update_checkpoint(logs, chosen.partition, first_dirty)
            return CleanedLog(chosen.partition, None, problem)
        self._manager.update_checkpoint(logs, chosen.partition, end_offset)
        return CleanedLog(chosen.partition, end_offset)

    def _clean(self, chosen: LogToClean, now_ms: int) -> int:
        hosted = chosen.hosted
        cleaner = Cleaner(
            self._map,
            files=self._files,
            check_aborted=lambda: self._check_aborted(chosen.partition),
        )
        work = Pass(
            first_dirty_offset=chosen.part.first_dirty_offset,
            first_uncleanable_offset=chosen.part.first_uncleanable_offset,
            high_watermark=hosted.high_watermark,
            last_records=hosted.last_records,
            delete_retention_ms=hosted.config.delete_retention_ms,
            record_bytes_max=hosted.config.record_bytes_max,
            now_ms=now_ms,
        )
        return cleaner.clean(hosted.log, work)

    def _check_aborted(self, partition: TopicPartition) -> None:
        if self.is_aborted(partition):
            raise CleaningAbortedError(f"the cleaning of {partition} is to end")

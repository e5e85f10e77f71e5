"""The work of a cleaner's round on one log directory: clean the filthiest log, delete segments.

Counterpart of Kafka's LogCleaner without its threads: the caller decides when, passes the wall
clock, and lets nothing else change the files of the logs meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kvorum.storage.cleaner import CleanedPart, Cleaner, Pass
from kvorum.storage.errors import CleaningAbortedError, DiskError, PoisonedError, StorageError
from kvorum.storage.files import FileSystem
from kvorum.storage.log_cleaner_manager import HostedLog, LogCleanerManager, LogToClean
from kvorum.storage.offset_map import OffsetMap
from kvorum.storage.segment_retention import delete_old_segments
from kvorum.storage.topic_partition import TopicPartition


class CleanedLog(NamedTuple):
    """A log that a pass went over: what was done, or why it could not be."""

    partition: TopicPartition
    part: CleanedPart | None
    """None where the pass ended early."""

    problem: StorageError | None = None
    """What made the log uncleanable."""


class LogCleaner:
    """Cleans the logs of one directory, one at a time."""

    def __init__(
        self, manager: LogCleanerManager, offset_map: OffsetMap, *, files: FileSystem
    ) -> None:
        self._manager = manager
        self._map = offset_map
        self._files = files

    def clean_filthiest(
        self, logs: Mapping[TopicPartition, HostedLog], *, now_ms: int
    ) -> CleanedLog | None:
        """Clean the log with the greatest dirty part; None where none is to be cleaned.

        Data that cannot be read makes its log uncleanable. Raises DiskError and PoisonedError.
        """
        chosen = self._manager.grab_filthiest(logs, now_ms=now_ms)
        if chosen is None:
            return None
        end_offset = chosen.part.first_dirty_offset
        try:
            part = self._clean(chosen, now_ms)
            end_offset = part.end_offset
        except CleaningAbortedError:
            return CleanedLog(chosen.partition, None)
        except (DiskError, PoisonedError):
            raise
        except StorageError as problem:
            self._manager.mark_uncleanable(chosen.partition)
            return CleanedLog(chosen.partition, None, problem)
        finally:
            self._manager.done_cleaning(logs, chosen.partition, end_offset)
        return CleanedLog(chosen.partition, part)

    def _clean(self, chosen: LogToClean, now_ms: int) -> CleanedPart:
        hosted = chosen.hosted
        cleaner = Cleaner(
            self._map,
            files=self._files,
            check_aborted=lambda: self._manager.check_aborted(chosen.partition),
        )
        work = Pass(
            first_dirty_offset=chosen.part.first_dirty_offset,
            first_uncleanable_offset=chosen.part.first_uncleanable_offset,
            last_records=hosted.last_records,
            delete_retention_ms=hosted.config.delete_retention_ms,
            now_ms=now_ms,
        )
        return cleaner.clean(hosted.log, work)

    def delete_old_segments(self, logs: Mapping[TopicPartition, HostedLog], *, now_ms: int) -> int:
        """Delete the old segments of the compacted logs; return their number."""
        grabbed = self._manager.grab_deletable(logs)
        try:
            return sum(_delete(logs[partition], now_ms) for partition in grabbed)
        finally:
            for partition in grabbed:
                self._manager.done_deleting(partition)


def _delete(hosted: HostedLog, now_ms: int) -> int:
    return delete_old_segments(
        hosted.log, hosted.config, high_watermark=hosted.high_watermark, now_ms=now_ms
    )

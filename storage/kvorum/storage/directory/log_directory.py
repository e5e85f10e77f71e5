"""One entry of ``log.dirs``: its logs, and the checkpoint files that all of them share."""

from __future__ import annotations

import threading
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvorum.storage.directory.partition_directory import (
    DELETE_SUFFIX,
    future_partition,
    leaving_name,
    suffix_of,
)
from kvorum.storage.errors import CorruptFileError
from kvorum.storage.files import FileSystem, disk_errors
from kvorum.storage.log.log_loader import LogCheckpoint
from kvorum.storage.names import METADATA_LOG_DIRECTORY, parse_partition_directory
from kvorum.storage.small_files.offset_checkpoint_file import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    OffsetCheckpointFile,
)
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition

_ADVICE: Final = (
    "Restore the file from a copy, or remove it: then every log of the directory is read whole"
)
_NAME_ADVICE: Final = "Move what is not a partition's directory out of the log directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDirectories:
    """The partitions that a log directory has, and the names of those that wait for deletion.

    `futures` are the replicas that move to this directory, with the names of their directories.
    """

    partitions: list[TopicPartition]
    deleted: list[str]
    futures: dict[TopicPartition, str]


class LogDirectory:
    """A directory of logs; `was_clean` says that all of them were closed in good order."""

    def __init__(self, path: Path, directory_id: bytes, files: FileSystem, *, was_clean: bool):
        self.path = path
        self.id = directory_id
        self.was_clean = was_clean
        self.logs: dict[TopicPartition, UnifiedLog] = {}
        self.future_logs: dict[TopicPartition, UnifiedLog] = {}
        """The logs of replicas that move here, until they take the place of the current ones."""
        self._future_paths: dict[TopicPartition, Path] = {}
        self.files = files
        """The file system, as the logs of this directory use it."""
        self._recovery_points = self._checkpoint(RECOVERY_POINT_CHECKPOINT)
        self._log_starts = self._checkpoint(LOG_START_OFFSET_CHECKPOINT)
        self._high_watermarks = self._checkpoint(HIGH_WATERMARK_CHECKPOINT)
        self._stored_points = self._recovery_points.read()
        self._stored_starts = self._log_starts.read()
        self._stored_high_watermarks = self._high_watermarks.read()
        self.cleaner_checkpoint = self._checkpoint(CLEANER_OFFSET_CHECKPOINT)
        """The offset up to which each log of the directory is compacted."""
        self._is_closing = False
        # Held while the recovery points are stored: by the thread of the disks, or by one that
        # truncates a log.
        self._points_lock = threading.Lock()

    def _checkpoint(self, name: str) -> OffsetCheckpointFile:
        return OffsetCheckpointFile(self.path / name, self.files, advice=_ADVICE)

    def find(self) -> FoundDirectories:
        """Return what the directory holds; raises CorruptFileError for a name of no known kind."""
        found = FoundDirectories(partitions=[], deleted=[], futures={})
        with disk_errors(self.path, "listing"):
            names = self.files.list_directories(self.path)
        for name in names:
            if name == METADATA_LOG_DIRECTORY:
                continue
            suffix = suffix_of(name)
            parsed = parse_partition_directory(name)
            future = future_partition(name)
            if suffix == DELETE_SUFFIX:
                found.deleted.append(name)
            elif future is not None:
                self._take_future(found, future, name)
            elif suffix is None and parsed is not None:
                found.partitions.append(TopicPartition(*parsed))
            elif suffix is None:
                raise CorruptFileError(
                    "a directory whose name is not that of a partition",
                    file=self.path / name,
                    advice=_NAME_ADVICE,
                )
        return found

    def _take_future(self, found: FoundDirectories, future: TopicPartition, name: str) -> None:
        if future in found.futures:
            raise CorruptFileError(
                f"a second future replica of {future}",
                file=self.path / name,
                advice="Remove one of the two directories",
            )
        found.futures[future] = name

    def keep_checkpoints_of(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what the checkpoint files have about every other partition.

        A process that ends while it deletes a log leaves its entries; they are not of a new log
        of the same name.
        """
        for offsets in (self._stored_points, self._stored_starts, self._stored_high_watermarks):
            for topic_partition in offsets.keys() - partitions:
                del offsets[topic_partition]

    def forget_former_log(self, topic_partition: TopicPartition) -> None:
        """Remove, durably, what the checkpoint files have about a former log of this partition.

        To be called before a new log is made: after a power cut the directory of the new log may
        be there, and offsets of the former one would be taken for its own. Raises DiskError.
        """
        with self._points_lock:
            self._forget_offsets(topic_partition)

    def _forget_offsets(self, topic_partition: TopicPartition) -> None:
        for file, offsets in (
            (self._recovery_points, self._stored_points),
            (self._log_starts, self._stored_starts),
            (self._high_watermarks, self._stored_high_watermarks),
        ):
            offsets.pop(topic_partition, None)
            if file.has(topic_partition):
                file.write(offsets)

    def checkpoint_of(self, topic_partition: TopicPartition) -> LogCheckpoint:
        """Return what the checkpoint files have about a log."""
        return LogCheckpoint(
            recovery_point=self._stored_points.get(topic_partition, 0),
            log_start_offset=self._stored_starts.get(topic_partition, 0),
            had_clean_shutdown=self.was_clean,
        )

    def high_watermark_of(self, topic_partition: TopicPartition) -> int:
        """Return the high watermark that was stored of a log, 0 without one."""
        return self._stored_high_watermarks.get(topic_partition, 0)

    def keeper_of(self, topic_partition: TopicPartition) -> RecoveryPoint:
        """Return the keeper of a log's recovery point."""
        return RecoveryPoint(topic_partition, self)

    def keep_recovery_point(
        self, topic_partition: TopicPartition, offset: int, *, durably: bool
    ) -> None:
        """Keep the recovery point of a log; store it at once if `durably`, else with the others.

        Any thread may call.
        """
        with self._points_lock:
            self._stored_points[topic_partition] = offset
            # Closing the logs stores the points once, after the last of them.
            if durably and not self._is_closing:
                self._recovery_points.write(self._stored_points)

    def store_recovery_points(self) -> None:
        """Store the recovery point of every log durably."""
        with self._points_lock:
            for topic_partition, log in self._all_logs().items():
                self._stored_points[topic_partition] = log.local_log.recovery_point
            self._recovery_points.write(self._stored_points)

    def store_log_starts(self) -> None:
        """Store where logs start that have deleted records in their first segment, durably."""
        self._stored_starts = {
            topic_partition: log.log_start_offset
            for topic_partition, log in self._all_logs().items()
            if log.log_start_offset > log.local_log.first_stored_offset
        }
        self._log_starts.write(self._stored_starts)

    def store_high_watermarks(self) -> None:
        """Store the high watermark of every log durably, unless all are stored already."""
        offsets = {key: log.high_watermark for key, log in self._all_logs().items()}
        if offsets != self._stored_high_watermarks:
            self._stored_high_watermarks = offsets
            self._high_watermarks.write(offsets)

    def _all_logs(self) -> dict[TopicPartition, UnifiedLog]:
        """Return the logs that the checkpoint files are about; no partition has two here."""
        return {**self.future_logs, **self.logs}

    def take_future_path(self, topic_partition: TopicPartition, name: str) -> Path:
        """Note the name that the directory of a future replica has, and return its path."""
        path = self._future_paths[topic_partition] = self.path / name
        return path

    def rename_leaving(self, topic_partition: TopicPartition, unique: bytes, suffix: str) -> Path:
        """Give the directory of a partition that leaves, whose log is closed, its last name."""
        source = self._future_paths.pop(topic_partition, self.path / str(topic_partition))
        target = self.path / leaving_name(topic_partition, unique, suffix)
        self._rename_directory(source, target)
        with self._points_lock:
            self._stored_points.pop(topic_partition, None)
        self._stored_starts.pop(topic_partition, None)
        self._stored_high_watermarks.pop(topic_partition, None)
        return target

    def rename_future_to_current(self, topic_partition: TopicPartition) -> Path:
        """Give the directory of a future replica, whose log is closed, its proper name."""
        target = self.path / str(topic_partition)
        self._rename_directory(self._future_paths.pop(topic_partition), target)
        return target

    def _rename_directory(self, source: Path, target: Path) -> None:
        with disk_errors(source, "renaming"):
            self.files.rename(source, target)
            self.files.sync_directory(self.path)

    def close(self, *, thread_count: int = 1) -> bool:
        """Close every log and store the checkpoints; return whether all is in good order.

        A log that a failed disk has made unusable is not. Several threads spend less time, because
        the disk does syncs that come together as one. Raises StorageError.
        """
        self._is_closing = True
        self.store_high_watermarks()
        logs = self._all_logs().values()
        is_sound = not any(log.local_log.poison.is_there for log in logs)
        with ThreadPoolExecutor(thread_count, thread_name_prefix="kvorum-close-logs") as threads:
            closings = [threads.submit(log.local_log.close) for log in logs]
        # A log that fails has not kept the others open.
        for closing in closings:
            closing.result()
        self.store_recovery_points()
        self.store_log_starts()
        return is_sound

    def abandon(self) -> None:
        """Close the files of every log without writing; the directory has no logs any more."""
        # Others may be going through the logs at this moment.
        logs, self.logs, self.future_logs = self._all_logs(), {}, {}
        for log in logs.values():
            log.local_log.abandon()


class RecoveryPoint:
    """The keeper of one log's recovery point, in the file that its log directory has for all."""

    def __init__(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        self._topic_partition = topic_partition
        self._directory = directory

    def write(self, offset: int, *, durably: bool) -> None:
        """Keep `offset`; it is stored now if `durably`, else with the next checkpoint."""
        self._directory.keep_recovery_point(self._topic_partition, offset, durably=durably)

    def close(self) -> None:
        """Do nothing: the file belongs to the directory."""

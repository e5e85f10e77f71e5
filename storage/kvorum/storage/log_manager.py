"""The logs of a broker in all its log directories (Kafka's LogManager).

Everything may block on the disk. The owner calls one method at a time, from any thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from kvorum.storage.clean_shutdown import write_clean_shutdown
from kvorum.storage.errors import CorruptFileError, DiskError, StorageError
from kvorum.storage.files import disk_errors
from kvorum.storage.log_directory import LogDirectory
from kvorum.storage.partition_metadata import read_partition_metadata
from kvorum.storage.topic_log_config import TopicLogConfig
from kvorum.storage.topic_partition import TopicPartition
from kvorum.storage.unified_log import UnifiedLog
from kvorum.storage.unified_log_loader import LogPlace, load_unified_log

_log = logging.getLogger(__name__)
_UNIQUE_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerSettings:
    """``producer.id.expiration.ms``, and how long the files of a deleted partition are kept."""

    producer_expiration_ms: int = 86_400_000
    delete_delay_ms: int = 60_000


class LogManager:
    """The logs of topics; `config_of` returns the settings of a topic's logs by its name.

    `directories` are those online. `has_offline_log_dirs` says that others are not: there may be
    logs of partitions that are not found (KIP-112).
    """

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        *,
        settings: LogManagerSettings,
        config_of: Callable[[str], TopicLogConfig],
        random: Random,
        has_offline_log_dirs: bool = False,
    ) -> None:
        self.directories = tuple(directories)
        self.has_offline_log_dirs = has_offline_log_dirs
        self._settings = settings
        self._config_of = config_of
        self._random = random
        self._deletions: list[tuple[int, LogDirectory, Path]] = []

    def startup(self, hosted: Callable[[TopicPartition], bytes | None], *, now_ms: int) -> None:
        """Load the logs that the last use has left; `hosted` returns a partition's topic id.

        A directory whose partition this broker does not host (None), or whose topic has another
        id, is set aside. Raises StorageError.
        """
        for directory in self.directories:
            try:
                self._load_logs(directory, hosted, now_ms)
            except DiskError as error:
                self.handle_log_dir_failure(directory)
                if not self.directories:
                    raise
                _log.error("%s: the log directory is offline: %s", directory.path, error)

    def _load_logs(
        self,
        directory: LogDirectory,
        hosted: Callable[[TopicPartition], bytes | None],
        now_ms: int,
    ) -> None:
        found = directory.find()
        directory.keep_checkpoints_of(found.partitions)
        due_ms = now_ms + self._settings.delete_delay_ms
        self._deletions += [(due_ms, directory, directory.path / name) for name in found.deleted]
        for topic_partition in found.partitions:
            topic_id = hosted(topic_partition)
            path = directory.path / str(topic_partition)
            stored_id = read_partition_metadata(path, directory.files)
            if topic_id is None or stored_id not in (None, topic_id):
                _log.warning("%s belongs to no partition of this broker; it is kept", path)
                directory.rename_stray(topic_partition, self._unique())
                continue
            self._demand_single(topic_partition, path)
            self._load(directory, topic_partition, topic_id, now_ms)

    def handle_log_dir_failure(self, directory: LogDirectory) -> None:
        """Go on without a directory; its logs are closed without writing."""
        self.directories = tuple(one for one in self.directories if one is not directory)
        self.has_offline_log_dirs = True
        self._deletions = [entry for entry in self._deletions if entry[1] is not directory]
        directory.abandon()

    def _demand_single(self, topic_partition: TopicPartition, path: Path) -> None:
        other = self.directory_of(topic_partition)
        if other is not None:
            raise CorruptFileError(
                f"the partition has a directory in {other.path} too",
                file=path,
                advice="Move the directory with the shorter log out of the log directories",
            )

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the log of a partition; None where there is none."""
        directory = self.directory_of(topic_partition)
        return None if directory is None else directory.logs[topic_partition]

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Return the directory that has a partition's log; None where there is none."""
        return next((one for one in self.directories if topic_partition in one.logs), None)

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        *,
        directory_id: bytes | None,
        now_ms: int,
    ) -> UnifiedLog:
        """Return a partition's log, made where there is none; raises StorageError.

        A new log goes to the directory that the controller names, or else to the one with the
        fewest logs. While a directory is offline, none is made in the place of one
        that may be there: only where the controller names a directory that is online, or has yet
        to learn of one.
        """
        log = self.get_log(topic_partition)
        if log is not None:
            return log
        known = {None, *(one.id for one in self.directories)}
        if self.has_offline_log_dirs and directory_id not in known:
            raise StorageError(f"the log of {topic_partition} may be in an offline log directory")
        return self._load(self._place_for(directory_id), topic_partition, topic_id, now_ms)

    def _place_for(self, directory_id: bytes | None) -> LogDirectory:
        if not self.directories:
            raise StorageError("all log directories are offline")
        named = next((one for one in self.directories if one.id == directory_id), None)
        return named or min(self.directories, key=lambda one: len(one.logs))

    def _load(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        topic_id: bytes,
        now_ms: int,
    ) -> UnifiedLog:
        place = LogPlace(
            directory=directory.path / str(topic_partition),
            topic_partition=topic_partition,
            topic_id=topic_id,
            checkpoint=directory.checkpoint_of(topic_partition),
            recovery_point_keeper=directory.keeper_of(topic_partition),
        )
        log = load_unified_log(
            place,
            files=directory.files,
            config=self._config_of(topic_partition.topic),
            producer_expiration_ms=self._settings.producer_expiration_ms,
            random=self._random,
            now_ms=now_ms,
        )
        log.update_high_watermark(directory.high_watermark_of(topic_partition))
        directory.logs[topic_partition] = log
        return log

    def async_delete(self, topic_partition: TopicPartition, *, now_ms: int) -> None:
        """Take a partition's log out of use; its files go once the delay has passed."""
        directory = self.directory_of(topic_partition)
        if directory is None:
            return
        directory.logs.pop(topic_partition).abandon()
        path = directory.rename_for_removal(topic_partition, self._unique())
        self._deletions.append((now_ms + self._settings.delete_delay_ms, directory, path))
        directory.store_recovery_points()

    def delete_logs(self, *, now_ms: int) -> int:
        """Remove the directories whose delay is over, and return their number."""
        due = [entry for entry in self._deletions if entry[0] <= now_ms]
        for _, directory, path in due:
            with disk_errors(path, "removing"):
                directory.files.remove_directory(path)
        self._deletions = [entry for entry in self._deletions if entry not in due]
        return len(due)

    def checkpoint_high_watermarks(self) -> None:
        """Store the high watermarks (``replica.high.watermark.checkpoint.interval.ms``)."""
        for directory in self.directories:
            directory.store_high_watermarks()

    def checkpoint_recovery_points(self) -> None:
        """Flush nothing, and store what is durable, and where logs start."""
        for directory in self.directories:
            directory.store_recovery_points()
            directory.store_log_starts()

    def shutdown(self, *, broker_epoch: int) -> None:
        """Close every log, and mark each directory that is left in good order.

        A directory that fails does not keep the others from it. Raises StorageError in the end.
        """
        failure: StorageError | None = None
        for directory in self.directories:
            try:
                if directory.close():
                    write_clean_shutdown(directory.path, directory.files, broker_epoch=broker_epoch)
            except StorageError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """Close the files without writing, as a crash would."""
        for directory in self.directories:
            directory.abandon()

    def _unique(self) -> bytes:
        return self._random.randbytes(_UNIQUE_BYTES)

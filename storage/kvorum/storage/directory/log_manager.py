"""The logs of a broker in all its log directories (Kafka's LogManager).

Everything may block on the disk. The owner calls one method at a time, from any thread.
"""

import logging
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Annotated, Final

from kvorum.storage.directory.log_directory import FoundDirectories, LogDirectory
from kvorum.storage.directory.partition_directory import (
    DELETE_SUFFIX,
    STRAY_SUFFIX,
    UNIQUE_BYTES,
    future_name,
)
from kvorum.storage.errors import CorruptFileError, DiskError, StorageError, TooManyOpenFilesError
from kvorum.storage.files import disk_errors
from kvorum.storage.log.disk_pace import DiskThreads
from kvorum.storage.log.log_loader import LogCheckpoint
from kvorum.storage.small_files.clean_shutdown import write_clean_shutdown
from kvorum.storage.small_files.partition_metadata import read_partition_metadata
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig
from kvorum.storage.topic_log.unified_log import LogPlace, UnifiedLog, load_unified_log
from kvorum.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)
_SET_ASIDE_ADVICE: Final = (
    "Or set kvorum.damaged.logs.set.aside=true: the leader of the partition is another broker, and "
    "the log is then kept under another name and fetched again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerSettings:
    """The time that the files of a deleted partition are kept for, and more.

    `sets_damaged_logs_aside` says that a log which is damaged at a start is fetched again,
    `recovery_thread_count` by how many threads the logs of a directory are closed.
    """

    delete_delay_ms: Annotated[int, "log.segment.delete.delay.ms"] = 60_000
    recovery_thread_count: Annotated[int, "num.recovery.threads.per.data.dir"] = 1
    sets_damaged_logs_aside: bool = False


class LogManager:
    """The logs of topics; `config_of` returns the settings of a topic's logs by its name.

    `producer_expiration_ms` returns the time after which producers that write nothing are
    forgotten, `cordoned` the paths of directories that get no new logs (KIP-1066). All of them may
    return something else later.

    A replica that moves to another directory has a future log there (KIP-113), which in the end
    takes the place of the current one. `directories` are those online, none before `startup` and
    after the end. `has_offline_log_dirs` says that there are others: there may be logs of
    partitions that are not found (KIP-112).
    """

    def __init__(
        self,
        settings: LogManagerSettings,
        *,
        config_of: Callable[[str], TopicLogConfig],
        producer_expiration_ms: Callable[[], int],
        random: Random,
        threads: DiskThreads | None = None,
        cordoned: Callable[[], Collection[Path]] = tuple,
    ) -> None:
        """`threads` truncate, and write what is appended while a disk is slow (`disk_queue`)."""
        self.directories: tuple[LogDirectory, ...] = ()
        self.has_offline_log_dirs = False
        self.settings = settings
        """The settings that count now, in whose place others may be set at any time."""
        self._config_of = config_of
        self._producer_expiration_ms = producer_expiration_ms
        self._random = random
        self._threads = threads
        self._cordoned = cordoned
        # Each with the time at which its delay begins.
        self._deletions: list[tuple[int, LogDirectory, Path]] = []
        self._preferred: dict[TopicPartition, LogDirectory] = {}
        self._is_fetchable: Callable[[TopicPartition], bool] = lambda _: False

    def startup(
        self,
        directories: Iterable[LogDirectory],
        hosted: Callable[[TopicPartition], bytes | None],
        *,
        now_ms: int,
        assigned: Callable[[TopicPartition], bytes | None] = lambda _: None,
        is_fetchable: Callable[[TopicPartition], bool] = lambda _: False,
        has_offline_log_dirs: bool = False,
    ) -> None:
        """Load the logs that the last use has left; `hosted` returns a partition's topic id.

        A directory whose partition this broker does not host (None), or whose topic has another
        id, is set aside. `assigned` returns the id of the directory in which the metadata has a
        partition. `is_fetchable` says that another broker leads a partition, and that this one does
        not count for it: such a log may be set aside if it is damaged. Raises StorageError.
        """
        self.directories = tuple(directories)
        self.has_offline_log_dirs = has_offline_log_dirs
        self._is_fetchable = is_fetchable
        found: dict[LogDirectory, FoundDirectories] = {}
        for directory in self.directories:
            with self._going_on_without(directory):
                found[directory] = directory.find()
                self._load_logs(directory, found[directory], hosted, assigned, now_ms)
        for directory in self.directories:
            with self._going_on_without(directory):
                self._load_future_logs(directory, found[directory], hosted, assigned, now_ms)

    @contextmanager
    def _going_on_without(self, directory: LogDirectory) -> Generator[None]:
        """Take a directory offline if it fails within the block, unless it is the last one."""
        try:
            yield
        except TooManyOpenFilesError:
            # The directory is sound, and has logs in it.
            raise
        except DiskError as error:
            self.handle_log_dir_failure(directory)
            if not self.directories:
                raise
            _log.error("%s: the log directory is offline: %s", directory.path, error)

    def _load_logs(
        self,
        directory: LogDirectory,
        found: FoundDirectories,
        hosted: Callable[[TopicPartition], bytes | None],
        assigned: Callable[[TopicPartition], bytes | None],
        now_ms: int,
    ) -> None:
        directory.keep_checkpoints_of({*found.partitions, *found.futures})
        self._deletions += [(now_ms, directory, directory.path / name) for name in found.deleted]
        for topic_partition in found.partitions:
            path = directory.path / str(topic_partition)
            topic_id = self._hosted_id(directory, topic_partition, path, hosted)
            if topic_id is None:
                continue
            place = self._place(directory, topic_partition, topic_id, path)
            if self._is_current(directory, place, assigned(topic_partition), now_ms):
                self._load_unless_damaged(directory, topic_partition, topic_id, now_ms)

    def _load_unless_damaged(
        self, directory: LogDirectory, topic_partition: TopicPartition, topic_id: bytes, now_ms: int
    ) -> None:
        """Load a log; set it aside if it is damaged, can be fetched again, and that is wanted."""
        try:
            self._load(directory, topic_partition, topic_id, now_ms)
        except CorruptFileError as error:
            if not self._is_fetchable(topic_partition):
                raise
            if not self.settings.sets_damaged_logs_aside:
                raise error.with_advice(_SET_ASIDE_ADVICE) from error
            aside = self._set_aside(directory, topic_partition)
            _log.error("%s is damaged and kept as %s: %s", topic_partition, aside, error)

    def _hosted_id(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        path: Path,
        hosted: Callable[[TopicPartition], bytes | None],
    ) -> bytes | None:
        """Return the topic id of a directory's partition; None for one that was set aside."""
        topic_id = hosted(topic_partition)
        stored_id = read_partition_metadata(path, directory.files)
        if topic_id is not None and stored_id in (None, topic_id):
            return topic_id
        _log.warning("%s belongs to no partition of this broker; it is kept", path)
        self._set_aside(directory, topic_partition)
        return None

    def _load_future_logs(
        self,
        directory: LogDirectory,
        found: FoundDirectories,
        hosted: Callable[[TopicPartition], bytes | None],
        assigned: Callable[[TopicPartition], bytes | None],
        now_ms: int,
    ) -> None:
        """Load the logs of replicas that were moving here.

        One that has no current log any more, and that the metadata has here, takes its place: the
        broker ended while it replaced the one with the other (Kafka's recoverAbandonedFutureLogs).
        """
        for topic_partition, name in found.futures.items():
            path = directory.take_future_path(topic_partition, name)
            topic_id = self._hosted_id(directory, topic_partition, path, hosted)
            if topic_id is None:
                continue
            current = self.directory_of(topic_partition)
            if current is directory or self.future_directory_of(topic_partition) is not None:
                raise CorruptFileError(
                    "the partition has another directory beside that of its future replica",
                    file=path,
                    advice="Remove the directory of the future replica, and move it again",
                )
            if current is None and assigned(topic_partition) == directory.id:
                _log.warning("%s becomes the current replica", path)
                directory.rename_future_to_current(topic_partition)
                self._load(directory, topic_partition, topic_id, now_ms)
            else:
                self._load_future(directory, topic_partition, path, topic_id, now_ms)

    def _load_future(
        self,
        directory: LogDirectory,
        topic_partition: TopicPartition,
        path: Path,
        topic_id: bytes,
        now_ms: int,
    ) -> UnifiedLog:
        log = self._open(directory, self._place(directory, topic_partition, topic_id, path), now_ms)
        directory.future_logs[topic_partition] = log
        return log

    def handle_log_dir_failure(self, directory: LogDirectory) -> None:
        """Go on without a directory; its logs are closed without writing."""
        self.directories = tuple(one for one in self.directories if one is not directory)
        self.has_offline_log_dirs = True
        self._deletions = [entry for entry in self._deletions if entry[1] is not directory]
        for topic_partition in [key for key, one in self._preferred.items() if one is directory]:
            del self._preferred[topic_partition]
        directory.abandon()

    def _is_current(
        self, directory: LogDirectory, place: LogPlace, assigned: bytes | None, now_ms: int
    ) -> bool:
        """Return whether the partition's current log is the one in this directory.

        A broker that ended while a future log replaced the current one has left two of them, as
        has a directory that comes back after its replicas were made again elsewhere. The one where
        the metadata has the replica counts; the other is set aside. Where the metadata has it in
        neither, the log that ends later counts, by the epoch of its last record and then by its
        end: within an epoch, followers have the same records up to where their logs end. (Kafka
        refuses to start.)
        """
        topic_partition = place.topic_partition
        other = self.directory_of(topic_partition)
        if other is None:
            return True
        is_here = assigned == directory.id
        if assigned not in {directory.id, other.id}:
            log = self._open(directory, place, now_ms)
            is_here = _last_epoch_and_end(log) > _last_epoch_and_end(other.logs[topic_partition])
            log.local_log.abandon()
        wrong = other if is_here else directory
        if is_here:
            other.logs.pop(topic_partition).local_log.abandon()
        aside = self._set_aside(wrong, topic_partition)
        _log.warning("%s has another log of its partition, which counts; it is kept", aside)
        return is_here

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the log of a partition; None without one."""
        directory = self.directory_of(topic_partition)
        return None if directory is None else directory.logs[topic_partition]

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Return the directory that has a partition's log; None without one."""
        return next((one for one in self.directories if topic_partition in one.logs), None)

    def future_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        """Return the log of a replica in the directory that it moves to; None where it stays."""
        directory = self.future_directory_of(topic_partition)
        return None if directory is None else directory.future_logs[topic_partition]

    def future_directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Return the directory to which a replica moves; None for one that stays."""
        return next((one for one in self.directories if topic_partition in one.future_logs), None)

    def prefer(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        """Make the partition's next log in a directory, unless it has one there already.

        Kafka's maybeUpdatePreferredLogDir.
        """
        if topic_partition not in {*directory.logs, *directory.future_logs}:
            self._preferred[topic_partition] = directory

    def create_future_log(
        self, topic_partition: TopicPartition, topic_id: bytes, *, now_ms: int
    ) -> UnifiedLog:
        """Return a new log in the preferred directory for a replica that is to move there.

        Raises StorageError, also while a directory is offline: there may be a future log in it.
        """
        if self.has_offline_log_dirs:
            raise StorageError(
                f"no future log is made for {topic_partition} while a log directory is offline"
            )
        directory = self._preferred[topic_partition]
        directory.forget_former_log(topic_partition)
        path = directory.take_future_path(
            topic_partition, future_name(topic_partition, self._unique())
        )
        log = self._load_future(directory, topic_partition, path, topic_id, now_ms)
        del self._preferred[topic_partition]
        return log

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        *,
        directory_id: bytes | None,
        now_ms: int,
    ) -> UnifiedLog:
        """Return a partition's log, and make it if it does not exist; raises StorageError.

        A new log goes to the preferred directory, or to the one that the controller names, or else
        to the one with the fewest logs that is not cordoned, if there is one. While a directory is
        offline, none is made in the place of one that may be there: only where the controller names
        a directory that is online, or has yet to learn of one.
        """
        log = self.get_log(topic_partition)
        if log is not None:
            return log
        known = {None, *(one.id for one in self.directories)}
        if self.has_offline_log_dirs and directory_id not in known:
            raise StorageError(f"the log of {topic_partition} may be in an offline log directory")
        directory = self._preferred.get(topic_partition) or self._place_for(directory_id)
        if topic_partition in directory.future_logs:
            # The original of the copy is gone.
            self.async_delete_future(topic_partition, now_ms=now_ms)
        directory.forget_former_log(topic_partition)
        log = self._load(directory, topic_partition, topic_id, now_ms)
        self._preferred.pop(topic_partition, None)
        return log

    def _place_for(self, directory_id: bytes | None) -> LogDirectory:
        if not self.directories:
            raise StorageError("all log directories are offline")
        named = next((one for one in self.directories if one.id == directory_id), None)
        if named is not None:
            return named
        cordoned = self._cordoned()
        usable = [one for one in self.directories if one.path not in cordoned]
        # As in Kafka, one has to take the log though all are cordoned.
        return min(usable or self.directories[:1], key=lambda one: len(one.logs))

    def _load(
        self, directory: LogDirectory, topic_partition: TopicPartition, topic_id: bytes, now_ms: int
    ) -> UnifiedLog:
        path = directory.path / str(topic_partition)
        log = self._open(directory, self._place(directory, topic_partition, topic_id, path), now_ms)
        directory.logs[topic_partition] = log
        return log

    def _place(
        self, directory: LogDirectory, topic_partition: TopicPartition, topic_id: bytes, path: Path
    ) -> LogPlace:
        return LogPlace(
            directory=path,
            topic_partition=topic_partition,
            topic_id=topic_id,
            checkpoint=directory.checkpoint_of(topic_partition),
            recovery_point_keeper=directory.keeper_of(topic_partition),
        )

    def _open(self, directory: LogDirectory, place: LogPlace, now_ms: int) -> UnifiedLog:
        log = load_unified_log(
            place,
            files=directory.files,
            config=self._config_of(place.topic_partition.topic),
            producer_expiration_ms=self._producer_expiration_ms,
            random=self._random,
            now_ms=now_ms,
            threads=self._threads,
        )
        log.update_high_watermark(directory.high_watermark_of(place.topic_partition))
        return log

    def replace_current_with_future_log(
        self, topic_partition: TopicPartition, topic_id: bytes, *, now_ms: int
    ) -> UnifiedLog:
        """Let the future log be the partition's log, and remove the current one after the delay.

        The caller knows that the future log has everything. Its files are durable, under their
        proper name, before anything is done to those of the current log. Raises StorageError: the
        current log is as it was then, and the future log cannot be used any more.
        """
        source = self.directory_of(topic_partition)
        target = self.future_directory_of(topic_partition)
        if source is None or target is None:
            raise StorageError(f"a log of {topic_partition} is offline")
        current, future = source.logs[topic_partition], target.future_logs[topic_partition]
        checkpoint = LogCheckpoint(
            recovery_point=future.log_end_offset,
            log_start_offset=future.log_start_offset,
            had_clean_shutdown=True,
        )
        future.local_log.flush()
        future.local_log.close()
        del target.future_logs[topic_partition]
        path = target.rename_future_to_current(topic_partition)
        place = self._place(target, topic_partition, topic_id, path)
        log = self._open(target, replace(place, checkpoint=checkpoint), now_ms)
        log.producers.take_over(current.producers)
        log.update_high_watermark(current.high_watermark)
        target.logs[topic_partition] = log
        target.store_recovery_points()
        target.store_log_starts()
        try:
            self._remove(source, topic_partition, source.logs.pop(topic_partition), now_ms)
            source.store_recovery_points()
            source.store_log_starts()
        except DiskError as error:
            # The directory goes offline for it, and the replica is somewhere else by now.
            _log.error("%s: a replaced log remains: %s", source.path, error)
        return log

    def async_delete(self, topic_partitions: Iterable[TopicPartition], *, now_ms: int) -> None:
        """Take the logs of partitions out of use; their files go once the delay has passed.

        One that fails keeps none of the others: the first StorageError is raised in the end.
        """
        failures: list[StorageError] = []
        changed: set[LogDirectory] = set()
        for topic_partition in topic_partitions:
            self._preferred.pop(topic_partition, None)
            directory = self.directory_of(topic_partition)
            try:
                if directory is not None:
                    changed.add(directory)
                    log = directory.logs.pop(topic_partition)
                    self._remove(directory, topic_partition, log, now_ms)
                self.async_delete_future(topic_partition, now_ms=now_ms)
            except StorageError as error:
                failures.append(error)
        # The file has all logs of a directory: once for all that leave.
        for directory in self.directories:
            if directory in changed:
                directory.store_recovery_points()
        if failures:
            raise failures[0]

    def async_delete_future(self, topic_partition: TopicPartition, *, now_ms: int) -> None:
        """Take the log of a replica that was to move out of use, if there is one."""
        directory = self.future_directory_of(topic_partition)
        if directory is not None:
            log = directory.future_logs.pop(topic_partition)
            self._remove(directory, topic_partition, log, now_ms)
            directory.store_recovery_points()

    def _remove(
        self, directory: LogDirectory, topic_partition: TopicPartition, log: UnifiedLog, now_ms: int
    ) -> None:
        log.local_log.abandon()
        path = directory.rename_leaving(topic_partition, self._unique(), DELETE_SUFFIX)
        self._deletions.append((now_ms, directory, path))

    def delete_logs(self, *, now_ms: int) -> int:
        """Remove the directories whose delay is over, and return their number."""
        last_ms = now_ms - self.settings.delete_delay_ms
        due = [entry for entry in self._deletions if entry[0] <= last_ms]
        for _, directory, path in due:
            with disk_errors(path, "removing"):
                directory.files.remove_directory(path)
        self._deletions = [entry for entry in self._deletions if entry[0] > last_ms]
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
        directories, self.directories = self.directories, ()
        for directory in directories:
            try:
                if directory.close(thread_count=self.settings.recovery_thread_count):
                    write_clean_shutdown(directory.path, directory.files, broker_epoch=broker_epoch)
            except StorageError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """Close the files without writing, as a crash would."""
        directories, self.directories = self.directories, ()
        for directory in directories:
            directory.abandon()

    def _set_aside(self, directory: LogDirectory, topic_partition: TopicPartition) -> Path:
        """Rename a directory that is of no partition of this broker; it is not removed."""
        return directory.rename_leaving(topic_partition, self._unique(), STRAY_SUFFIX)

    def _unique(self) -> bytes:
        return self._random.randbytes(UNIQUE_BYTES)


def _last_epoch_and_end(log: UnifiedLog) -> tuple[int, int]:
    epoch = log.local_log.latest_epoch
    return -1 if epoch is None else epoch, log.log_end_offset

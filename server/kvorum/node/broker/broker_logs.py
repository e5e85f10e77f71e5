"""The logs of this broker, with what is done to them again and again (as LogManager in Kafka).

Logs belong to the event loop. What may block runs in threads: one for the disks, in which one thing
at a time is done, one for flushes, and one for compaction (Kafka's LogCleaner.CleanerThread): a
pass reads and copies in the thread; the event loop puts each copy in place. The others truncate,
read what is not at hand, and write what is appended to logs whose disk is slow.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kvorum.broker.local_replica_changes import PartitionInfo, local_changes
from kvorum.broker.views.config_layers import ConfigLayers
from kvorum.metadata import directory_ids
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.stored_appends import stored
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.config.settings import CleanerSettings, LogSettings
from kvorum.node.coroutines import OneAtATime, Signal, Task, other_work, sleep
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import ThreadedRuntime
from kvorum.storage.cleaner.cleaner import LogCleaner
from kvorum.storage.cleaner.log_cleaner_manager import HostedLog, LogCleanerManager
from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager
from kvorum.storage.errors import CleaningAbortedError, StorageError, TooManyOpenFilesError
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)
WRITER_COUNT: Final = 8
"""The number of logs that are read, truncated, or written on a slow disk, at the same time."""
THREAD_COUNT: Final = 3 + WRITER_COUNT
DELETION_CHECK_MS: Final = 5_000
"""The interval of looking for epochs that are not stored, and for files to be removed.

A file is removed once ``file.delete.delay.ms`` is over.
"""


class CleanerThread:
    """Compacts one log after the other, the one with the greatest dirty part first."""

    def __init__(
        self, settings: CleanerSettings, logs: LogManager, runtime: ThreadedRuntime
    ) -> None:
        self._settings = settings
        self._logs = logs
        self._runtime = runtime
        self._thread = OneAtATime(runtime)
        self._cleaners: dict[LogDirectory, LogCleaner] = {}
        self._task: Task[None] | None = None
        self._has_changed = Signal(runtime)
        self._is_over = False

    def startup(self) -> None:
        """Compact from now on; the logs are loaded."""
        settings = self._settings
        if not settings.is_enabled:
            return
        keys = _offset_map(settings)
        self._cleaners = {one: _cleaner_of(one, keys) for one in self._logs.directories}
        self._task = Task(self._run(), _on_end)

    def reconfigure(self, settings: CleanerSettings) -> None:
        """Let other settings count from the next pass on; if none runs, look at the logs at once.

        Settings whose memory takes not even one key are logged, and those before stay.
        """
        if settings == self._settings or not settings.is_enabled:
            return
        try:
            keys = _offset_map(settings)
        except ValueError as error:
            _log.error(LogEvent("The settings of compaction stay as they were", error=str(error)))
            return
        self._settings = settings
        for cleaner in self._cleaners.values():
            cleaner.use(keys)
        self._has_changed.set()

    async def shutdown(self) -> None:
        """End a running pass, and return when the thread does nothing any more."""
        self._is_over = True
        for directory, cleaner in self._cleaners.items():
            # The thread for the disks may still add a log.
            for partition in tuple(directory.logs):
                cleaner.abort_cleaning(partition)
        if self._task is not None:
            self._task.close()
            await self._thread.done()

    async def abort_cleaning(self, partitions: Collection[TopicPartition]) -> None:
        """Return once no pass works on partitions to be deleted; none begins until `forget`."""
        for directory, cleaner in self._cleaners.items():
            leaving = [one for one in partitions if one in directory.logs]
            for partition in leaving:
                cleaner.abort_cleaning(partition)
            if leaving:
                await self._thread.done()

    async def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions that are deleted, behind every pass that was to begin before."""
        for cleaner in self._cleaners.values():
            gone = [one for one in partitions if cleaner.is_aborted(one)]
            if gone:
                await self._thread.in_thread(partial(cleaner.forget, gone))

    async def abort_and_pause_cleaning(self, partition: TopicPartition) -> None:
        """Return once no pass works on a partition whose replica moves; none begins before it has.

        A pass would take a delete marker away whose record has been copied already.
        """
        for directory, cleaner in self._cleaners.items():
            if partition in directory.logs:
                cleaner.abort_cleaning(partition)
                await self._thread.in_thread(partial(cleaner.resume_cleaning, partition))

    async def alter_checkpoint_dir(
        self, partition: TopicPartition, source: LogDirectory, target: LogDirectory
    ) -> None:
        """Move the checkpoint of a partition whose replica has moved."""
        if not self._cleaners:
            return
        log = target.logs.get(partition)
        if log is not None and log.config.cleanup.is_compacted:
            cleaner, other = self._cleaners[source], self._cleaners[target]
            await self._thread.in_thread(partial(cleaner.alter_checkpoint_dir, partition, other))

    async def _run(self) -> None:
        while True:
            self._has_changed.clear()
            cleaned = [await self._clean_filthiest(*each) for each in self._online()]
            if not any(cleaned):
                await self._has_changed.wait(self._settings.backoff_ms)

    def _online(self) -> list[tuple[LogDirectory, LogCleaner]]:
        """Return the directories that have not failed, with their cleaners."""
        online = self._logs.directories
        return [each for each in self._cleaners.items() if each[0] in online]

    async def _clean_filthiest(self, directory: LogDirectory, cleaner: LogCleaner) -> bool:
        """Return whether a log of the directory was cleaned."""
        logs = self._compacted(directory)
        now_ms = self._runtime.wall_ms()
        try:
            done = await self._thread.in_thread(
                partial(cleaner.clean_filthiest, logs, now_ms=now_ms)
            )
        except StorageError as error:
            _log.error(LogEvent("A log was not compacted", error=str(error)))
            return False
        if done is None:
            return False
        if done.problem is not None:
            is_expected = isinstance(done.problem, StorageError)
            _log.error(
                LogEvent("A log cannot be compacted any more", error=str(done.problem)),
                exc_info=None if is_expected else done.problem,
            )
        return done.end_offset is not None

    def _compacted(self, directory: LogDirectory) -> dict[TopicPartition, HostedLog]:
        """Return the logs for a round, which has to take in what they were truncated to."""
        return {
            partition: replace(
                log.hosted(self._in_owner),
                is_paused=self._logs.future_directory_of(partition) is not None,
            )
            # The thread for the disk may take a log away meanwhile.
            for partition, log in tuple(directory.logs.items())
            if log.config.cleanup.is_compacted
            and not log.local_log.poison.is_there
            and not log.writes.is_behind
        }

    def _in_owner(self, work: Callable[[], None]) -> None:
        """Run something in the event loop, from the thread."""

        def unless_over() -> None:
            if self._is_over:
                raise CleaningAbortedError("the broker stops")
            work()

        self._runtime.run_in_loop(unless_over)


def _offset_map(settings: CleanerSettings) -> OffsetMap:
    """Return the memory for keys; raises ValueError if it takes none."""
    return OffsetMap(size_bytes=settings.dedupe_buffer_bytes, load_factor=settings.load_factor)


def _cleaner_of(directory: LogDirectory, keys: OffsetMap) -> LogCleaner:
    manager = LogCleanerManager(directory.cleaner_checkpoint, lambda: directory.logs)
    return LogCleaner(manager, keys, directory.files)


def _on_end(result: Exception | None) -> None:
    if result is not None:
        _log.error("Logs are compacted no longer", exc_info=result)


class BrokerLogs:
    """The log manager, the threads that work for it, and its schedule."""

    def __init__(
        self,
        broker: ThisBroker,
        manager: LogManager,
        settings: LogSettings,
        *,
        deletion_check_ms: int = DELETION_CHECK_MS,
    ) -> None:
        self.manager = manager
        self.disk = OneAtATime(broker.runtime)
        self.cleaner = CleanerThread(settings.cleaner, manager, broker.runtime)
        self._broker = broker
        self._runtime = broker.runtime
        self._settings = settings
        self._manager_settings = manager.settings
        self._deletion_check_ms = deletion_check_ms
        self._flushes = OneAtATime(broker.runtime)
        self._flushing: set[UnifiedLog] = set()
        self._tasks: list[Task[None]] = []

    async def startup(
        self, directories: Sequence[LogDirectory], *, has_offline_log_dirs: bool
    ) -> None:
        """Load the logs of the partitions that the published image has.

        `has_offline_log_dirs` says that the configuration has more directories.
        Raises StorageError if a log cannot be opened.
        """
        broker_id = self._broker.id
        everything = local_changes(TopicsImage(), self._broker.image().topics, broker_id)
        infos = (*everything.leaders, *everything.followers)
        hosted = {info.topic_partition: info for info in infos}
        ids = {info.topic_partition: info.topic_id for info in infos}
        places = {info.topic_partition: info.registration.directory(broker_id) for info in infos}
        await self.disk.in_thread(
            lambda: self.manager.startup(
                directories,
                ids.get,
                now_ms=self._runtime.wall_ms(),
                assigned=places.get,
                is_fetchable=lambda key: hosted[key].is_fetchable(broker_id),
                has_offline_log_dirs=has_offline_log_dirs,
            )
        )

    def reconfigure(self, layers: ConfigLayers) -> None:
        """Let the dynamic values of this broker count."""
        self.cleaner.reconfigure(layers.updated(self._settings.cleaner))
        self.manager.settings = layers.updated(self._manager_settings)

    def directory_to_report(self, info: PartitionInfo, image: MetadataImage) -> LogDirectory | None:
        """Return where a log is, unless the metadata log has it there already (KIP-858)."""
        version = image.features.metadata_version
        if version is None or not version.supports_directory_assignment:
            return None
        directory = self.manager.directory_of(info.topic_partition)
        following = self.manager.future_directory_of(info.topic_partition)
        assigned = info.registration.directory(self._broker.id)
        # The controller knows of a move before the replica is there.
        is_moving = following is not None and following.id == assigned
        return None if is_moving or directory is None or directory.id == assigned else directory

    async def delete(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Take the logs of deleted partitions out of use; their files go later."""
        now_ms = self._runtime.wall_ms()
        await self.cleaner.abort_cleaning(topic_partitions)
        try:
            await self.disk.in_thread(
                partial(self.manager.async_delete, topic_partitions, now_ms=now_ms)
            )
        except StorageError as error:
            _log.error(LogEvent("A deleted partition's files remain", error=str(error)))
        try:
            await self.cleaner.forget(topic_partitions)
        except StorageError as error:
            _log.error(LogEvent("How far deleted partitions are compacted stays", error=str(error)))

    def begin_schedule(self) -> None:
        """Begin with what is done again and again; the partitions have their logs."""
        manager, settings, run = self.manager, self._settings, self._broker.run
        on_disk: tuple[tuple[int, Callable[[], object]], ...] = (
            (settings.high_watermark_checkpoint_ms, manager.checkpoint_high_watermarks),
            (settings.recovery_point_checkpoint_ms, manager.checkpoint_recovery_points),
            (self._deletion_check_ms, lambda: manager.delete_logs(now_ms=self._runtime.wall_ms())),
        )
        self._tasks = [run(self._on_disk_every(*each)) for each in on_disk]
        self._tasks += [run(self._delete_old_segments()), run(self._update_files())]
        self._tasks.append(run(self._remove_expired_producers()))
        self.cleaner.startup()

    def make_logs(
        self, infos: Iterable[PartitionInfo]
    ) -> list[tuple[PartitionInfo, UnifiedLog | TooManyOpenFilesError]]:
        """Return partitions with their logs; in the disks' thread.

        One that cannot be hosted is left out, but for one that got no descriptors.
        """
        made: list[tuple[PartitionInfo, UnifiedLog | TooManyOpenFilesError]] = []
        for info in infos:
            assigned = info.registration.directory(self._broker.id)
            try:
                log = self.manager.get_or_create_log(
                    info.topic_partition,
                    info.topic_id,
                    directory_id=None if assigned == directory_ids.UNASSIGNED else assigned,
                    now_ms=self._runtime.wall_ms(),
                )
            except TooManyOpenFilesError as error:
                made.append((info, error))
                continue
            except StorageError as error:
                _log.error(LogEvent("A partition cannot be hosted", error=str(error)))
                continue
            made.append((info, log))
        return made

    def flush(self, log: UnifiedLog) -> None:
        """Make finished segments durable soon, unless that is to happen already (flush-log)."""
        if log not in self._flushing:
            self._flushing.add(log)
            self._broker.run(self._flush(log))

    async def shutdown(self, close: Callable[[LogManager], None]) -> None:
        """End the schedule and what runs in threads; then have the logs closed."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.close()
        await self.cleaner.shutdown()
        await self._flushes.done()
        await self.disk.in_thread(lambda: close(self.manager))

    async def _on_disk_every(self, interval_ms: int, work: Callable[[], object]) -> None:
        while True:
            await sleep(self._runtime, interval_ms)
            try:
                await self.disk.in_thread(work)
            except StorageError as error:
                _log.error(LogEvent("A task of the log directories failed", error=str(error)))

    async def _delete_old_segments(self) -> None:
        """Apply retention."""
        while True:
            await sleep(self._runtime, self._settings.retention_check_ms)
            for log in self._logs():
                await stored(log.writes)
                if log.local_log.is_truncating:
                    continue
                try:
                    log.delete_old_segments(now_ms=self._runtime.wall_ms())
                except StorageError as error:
                    _log.error(LogEvent("Old segments were not deleted", error=str(error)))
                await self._update_files_of(log)

    async def _remove_expired_producers(self) -> None:
        """Have each log forget the producers that wrote nothing for their time, if it can now."""
        while True:
            await sleep(self._runtime, self._settings.producer_expiration_check_ms)
            for log in self._logs():
                # A truncation reads the producers again, in its thread.
                if not log.local_log.is_truncating:
                    log.remove_expired_producers(now_ms=self._runtime.wall_ms())
                await other_work(self._runtime)

    async def _update_files(self) -> None:
        """Remove the files of segments that were deleted or compacted; store new epochs."""
        while True:
            await sleep(self._runtime, self._deletion_check_ms)
            for log in self._logs():
                await self._update_files_of(log)

    async def _update_files_of(self, log: UnifiedLog) -> None:
        now_ms = self._runtime.wall_ms()
        if not log.local_log.has_files_to_update(now_ms=now_ms):
            await other_work(self._runtime)
            return
        try:
            await self.disk.in_thread(partial(log.local_log.update_files, now_ms=now_ms))
        except StorageError as error:
            _log.error(LogEvent("The files of a log were not updated", error=str(error)))

    def _logs(self) -> Iterator[UnifiedLog]:
        """Yield the logs that are there, each unless it has been closed meanwhile."""
        for directory in self.manager.directories:
            # The thread for the disks may add a log meanwhile, or take one away.
            for log in (*directory.logs.values(), *directory.future_logs.values()):
                if not log.local_log.is_closed:
                    yield log

    async def _flush(self, log: UnifiedLog) -> None:
        try:
            await self._flushes.in_thread(log.local_log.flush)
        except StorageError as error:
            # A closed log is one whose topic was deleted, or whose replica moved, meanwhile. Any
            # other is unusable from here on, and refuses appends with this very error.
            if not log.local_log.is_closed:
                _log.error(LogEvent("A log was not flushed", error=str(error)))
        finally:
            self._flushing.discard(log)

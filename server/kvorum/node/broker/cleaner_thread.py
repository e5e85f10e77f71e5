"""The thread that compacts the logs of this broker (Kafka's LogCleaner.CleanerThread).

A pass reads and copies in the thread; the event loop, which owns the logs, puts each copy in place.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kvorum.node.config.settings import CleanerSettings
from kvorum.node.coroutines import OneAtATime, Task, sleep
from kvorum.node.event_loop import ThreadedRuntime
from kvorum.node.events.log_event import LogEvent
from kvorum.storage.cleaner.log_cleaner import LogCleaner
from kvorum.storage.cleaner.log_cleaner_manager import HostedLog, LogCleanerManager
from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager
from kvorum.storage.errors import CleaningAbortedError, StorageError
from kvorum.storage.topic_partition import TopicPartition

_log = logging.getLogger(__name__)


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
        self._is_over = False

    def startup(self) -> None:
        """Compact from now on; the logs are loaded."""
        settings = self._settings
        if not settings.is_enabled:
            return
        keys = OffsetMap(size_bytes=settings.dedupe_buffer_bytes, load_factor=settings.load_factor)
        self._cleaners = {
            directory: LogCleaner(
                LogCleanerManager(directory.cleaner_checkpoint), keys, directory.files
            )
            for directory in self._logs.directories
        }
        self._task = Task(self._run(settings.backoff_ms), _on_end)

    async def shutdown(self) -> None:
        """End a running pass, and return when the thread does nothing any more."""
        self._is_over = True
        for directory, cleaner in self._cleaners.items():
            for partition in directory.logs:
                cleaner.abort_cleaning(partition)
        if self._task is not None:
            self._task.close()
            await self._thread.done()

    async def abort_cleaning(self, partition: TopicPartition) -> None:
        """Return once no pass works on a partition to be deleted; none begins until `forget`."""
        for directory, cleaner in self._cleaners.items():
            if partition in directory.logs:
                cleaner.abort_cleaning(partition)
                await self._thread.done()

    async def forget(self, partition: TopicPartition) -> None:
        """Forget a partition that is deleted, behind every pass that was to begin before."""
        for directory, cleaner in self._cleaners.items():
            if cleaner.is_aborted(partition):
                others = self._compacted(directory)
                await self._thread.in_thread(partial(cleaner.forget, others, partition))

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
        known = (self._compacted(source), self._compacted(target))
        if partition in known[1]:
            cleaner, other = self._cleaners[source], self._cleaners[target]
            await self._thread.in_thread(
                partial(cleaner.alter_checkpoint_dir, known[0], partition, other, known[1])
            )

    async def _run(self, backoff_ms: int) -> None:
        while True:
            cleaned = [await self._clean_filthiest(*each) for each in self._cleaners.items()]
            if not any(cleaned):
                await sleep(self._runtime, backoff_ms)

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
            _log.error(LogEvent("A log cannot be compacted any more", error=str(done.problem)))
        return done.end_offset is not None

    def _compacted(self, directory: LogDirectory) -> dict[TopicPartition, HostedLog]:
        return {
            partition: replace(
                log.hosted(self._in_owner),
                is_paused=self._logs.future_directory_of(partition) is not None,
            )
            # The thread for the disk may take a log away meanwhile.
            for partition, log in tuple(directory.logs.items())
            if log.config.cleanup.is_compacted and not log.local_log.poison.is_there
        }

    def _in_owner(self, work: Callable[[], None]) -> None:
        """Run something in the event loop, from the thread."""

        def unless_over() -> None:
            if self._is_over:
                raise CleaningAbortedError("the broker stops")
            work()

        self._runtime.run_in_loop(unless_over)


def _on_end(result: Exception | None) -> None:
    if result is not None:
        _log.error("Logs are compacted no longer", exc_info=result)

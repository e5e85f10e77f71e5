"""The thread that compacts the logs of this broker (Kafka's LogCleaner.CleanerThread).

A pass reads and copies in the thread; the event loop, which owns the logs, puts each copy in place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from kvorum.node.clock import Clock
from kvorum.node.config.settings import CleanerSettings
from kvorum.node.events.log_event import LogEvent
from kvorum.storage.errors import CleaningAbortedError, StorageError
from kvorum.storage.log_cleaner import LogCleaner
from kvorum.storage.log_cleaner_manager import HostedLog, LogCleanerManager
from kvorum.storage.log_directory import LogDirectory
from kvorum.storage.offset_map import OffsetMap
from kvorum.storage.topic_partition import TopicPartition

Result = TypeVar("Result")
_MS_PER_S: Final = 1000
_log = logging.getLogger(__name__)


class CleanerThread:
    """Compacts one log after the other, the one with the greatest dirty part first."""

    def __init__(
        self,
        settings: CleanerSettings,
        directories: Sequence[LogDirectory],
        clock: Clock,
        is_moving: Callable[[TopicPartition], bool],
    ) -> None:
        """`is_moving` says of a partition that its replica is copied to another directory."""
        self._settings = settings
        self._clock = clock
        self._is_moving = is_moving
        keys = OffsetMap(size_bytes=settings.dedupe_buffer_bytes, load_factor=settings.load_factor)
        self._cleaners = [
            (
                directory,
                LogCleaner(LogCleanerManager(directory.cleaner_checkpoint), keys, directory.files),
            )
            for directory in directories
        ]
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="kvorum-log-cleaner")
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())
        self._is_over = False

    async def shutdown(self) -> None:
        """End a running pass, and return when the thread does nothing any more."""
        self._is_over = True
        for directory, cleaner in self._cleaners:
            for partition in directory.logs:
                cleaner.abort_cleaning(partition)
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._in_thread(lambda: None)
        self._thread.shutdown()

    async def abort_cleaning(self, partition: TopicPartition) -> None:
        """Return once no pass works on a partition to be deleted; none begins until `forget`."""
        for directory, cleaner in self._cleaners:
            if partition in directory.logs:
                cleaner.abort_cleaning(partition)
        await self._in_thread(lambda: None)

    async def forget(self, partition: TopicPartition) -> None:
        """Forget a partition that is deleted, behind every pass that was to begin before."""
        for directory, cleaner in self._cleaners:
            if cleaner.is_aborted(partition):
                others = self._compacted(directory)
                await self._in_thread(partial(cleaner.forget, others, partition))

    async def abort_and_pause_cleaning(self, partition: TopicPartition) -> None:
        """Return once no pass works on a partition whose replica moves; none begins before it has.

        A pass would take a delete marker away whose record has been copied already.
        """
        for directory, cleaner in self._cleaners:
            if partition in directory.logs:
                cleaner.abort_cleaning(partition)
                await self._in_thread(partial(cleaner.resume_cleaning, partition))

    async def alter_checkpoint_dir(
        self, partition: TopicPartition, source: LogDirectory, target: LogDirectory
    ) -> None:
        """Move the checkpoint of a partition whose replica has moved."""
        cleaners = {id(directory): cleaner for directory, cleaner in self._cleaners}
        known = (self._compacted(source), self._compacted(target))
        if partition not in known[1]:
            return
        cleaner, other = cleaners[id(source)], cleaners[id(target)]
        await self._in_thread(
            partial(cleaner.alter_checkpoint_dir, known[0], partition, other, known[1])
        )

    async def _run(self) -> None:
        while True:
            cleaned = [await self._clean_filthiest(*each) for each in self._cleaners]
            if not any(cleaned):
                await asyncio.sleep(self._settings.backoff_ms / _MS_PER_S)

    async def _clean_filthiest(self, directory: LogDirectory, cleaner: LogCleaner) -> bool:
        """Return whether a log of the directory was cleaned."""
        logs = self._compacted(directory)
        now_ms = self._clock.wall_ms()
        try:
            done = await self._in_thread(lambda: cleaner.clean_filthiest(logs, now_ms=now_ms))
        except StorageError as error:
            _log.error(LogEvent("A log was not compacted", error=str(error)))
            return False
        if done is None:
            return False
        if done.problem is not None:
            _log.error(LogEvent("A log cannot be compacted any more", error=str(done.problem)))
        return done.part is not None

    def _compacted(self, directory: LogDirectory) -> dict[TopicPartition, HostedLog]:
        return {
            partition: replace(log.hosted(self._in_owner), is_paused=self._is_moving(partition))
            # The thread for the disk may take a log away meanwhile.
            for partition, log in tuple(directory.logs.items())
            if log.config.cleanup.is_compacted and not log.is_poisoned
        }

    def _in_owner(self, work: Callable[[], None]) -> None:
        """Run something in the event loop, from the thread."""

        async def run() -> None:
            if self._is_over:
                raise CleaningAbortedError("the broker stops")
            work()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        return await self._loop.run_in_executor(self._thread, work)

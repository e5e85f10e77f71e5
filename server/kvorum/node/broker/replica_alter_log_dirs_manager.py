"""Moves replicas between the log directories of this broker (KIP-113, KIP-858).

Kafka's ReplicaAlterLogDirsManager, and alterReplicaLogDirs of its ReplicaManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple

from kvorum.broker.assignments import PartitionKey
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.node.broker.assignments_manager import AssignmentsManager
from kvorum.node.broker.cleaner_thread import CleanerThread
from kvorum.node.broker.replica_alter_log_dirs_thread import Move, ReplicaAlterLogDirsThread
from kvorum.node.clock import Clock
from kvorum.storage.errors import StorageError
from kvorum.storage.log_directory import LogDirectory
from kvorum.storage.log_manager import LogManager
from kvorum.storage.partition_directory import has_future_name
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode

ALL_DIRECTORIES: Final = "*"
LAST_COPIES_MAX: Final = 8
"""How much of what came in last is copied while nothing else goes on, in fetches."""


class MoveSettings(NamedTuple):
    """The entries of ``log.dirs`` and ``cordoned.log.dirs``, and ``replica.fetch.*``."""

    directories: tuple[str, ...]
    cordoned: tuple[str, ...]
    fetch_bytes_max: int
    backoff_ms: int


class MoveEnvironment(NamedTuple):
    """What moves live on.

    `on_disk` runs what may block in the thread that all else of the logs runs in; `cleaner` returns
    the cleaner if there is one; `partition_of` returns a partition that this broker hosts.
    """

    logs: LogManager
    assignments: AssignmentsManager
    clock: Clock
    on_disk: Callable[[Callable[[], object]], Awaitable[object]]
    partition_of: Callable[[TopicPartition], Partition | None]
    cleaner: Callable[[], CleanerThread | None]
    on_failure: Callable[[Exception], None]
    quota: ReplicationQuotaManager


class ReplicaAlterLogDirsManager:
    """The replicas that are on their way to another directory."""

    def __init__(self, settings: MoveSettings, environment: MoveEnvironment) -> None:
        self._settings = settings
        self._logs = environment.logs
        self._clock = environment.clock
        self._on_disk = environment.on_disk
        self._partition_of = environment.partition_of
        self._cleaner = environment.cleaner
        self._thread = ReplicaAlterLogDirsThread(
            environment.assignments,
            environment.clock,
            fetch_bytes_max=settings.fetch_bytes_max,
            backoff_ms=settings.backoff_ms,
            replace=self._replace,
            on_failure=environment.on_failure,
            quota=environment.quota,
        )

    async def shutdown(self) -> None:
        """Copy no longer; the next start goes on."""
        await self._thread.close()

    async def alter(self, topic_partition: TopicPartition, path: str) -> ErrorCode:
        """Begin to move a replica to a directory, or cancel a move; the caller does one at a time.

        A replica that is not there yet will be made in that directory.
        """
        if not has_future_name(topic_partition):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        target = self._directory(path)
        if not isinstance(target, LogDirectory):
            return target
        partition = self._partition_of(topic_partition)
        if partition is not None:
            if partition.is_offline:
                return ErrorCode.KAFKA_STORAGE_ERROR
            if self._logs.future_directory_of(topic_partition) not in {None, target}:
                await self._cancel(partition)
        self._logs.prefer(topic_partition, target)
        if partition is None:
            return ErrorCode.REPLICA_NOT_AVAILABLE
        is_there = self._logs.directory_of(topic_partition) is target
        if is_there or self._logs.future_log(topic_partition) is not None:
            return ErrorCode.NONE
        try:
            await self._begin(partition)
        except StorageError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def resume(self, partition: Partition) -> None:
        """Go on with the move of a replica, if it has a future log (maybeAddLogDirFetchers)."""
        topic_partition = partition.topic_partition
        source = self._logs.directory_of(topic_partition)
        target = self._logs.future_directory_of(topic_partition)
        if source is not None and target is not None:
            partition.future_log = target.future_logs[topic_partition]
            self._thread.add(partition, source.id, target.id)

    def stop(self, key: PartitionKey) -> None:
        """Copy a replica no longer; its future log stays as it is."""
        self._thread.remove(key)

    def _directory(self, path: str) -> LogDirectory | ErrorCode:
        """Return the directory that a request names, or the code of its refusal."""
        # As in Kafka, the request's text is not normalized.
        named = [one for one in self._settings.directories if str(Path(one).absolute()) == path]
        if not named:
            return ErrorCode.LOG_DIR_NOT_FOUND
        online = {str(one.path.absolute()): one for one in self._logs.directories}
        if path not in online:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if {ALL_DIRECTORIES, *named} & set(self._settings.cordoned):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        return online[path]

    async def _begin(self, partition: Partition) -> None:
        topic_partition, topic_id = partition.topic_partition, partition.topic_id
        now_ms = self._clock.wall_ms()
        logs = self._logs
        await self._on_disk(
            lambda: logs.create_future_log(topic_partition, topic_id, now_ms=now_ms)
        )
        cleaner = self._cleaner()
        if cleaner is not None:
            await cleaner.abort_and_pause_cleaning(topic_partition)
        self.resume(partition)

    async def _cancel(self, partition: Partition) -> None:
        topic_partition = partition.topic_partition
        self.stop((partition.topic_id, topic_partition.partition))
        partition.future_log = None
        now_ms = self._clock.wall_ms()
        logs = self._logs
        await self._on_disk(lambda: logs.async_delete_future(topic_partition, now_ms=now_ms))

    async def _replace(self, move: Move) -> bool:
        """Replace a current log by its future one, while nobody else uses a log.

        The thread for the disk waits, and the event loop, which owns the logs, does nothing else.
        """
        source = self._logs.directory_of(move.topic_partition)
        target = self._logs.future_directory_of(move.topic_partition)
        # What is durable now need not be waited for then.
        await self._on_disk(move.replica.log.flush)
        loop = asyncio.get_running_loop()
        is_replaced = False

        async def replace() -> None:
            nonlocal is_replaced
            is_replaced = self._thread.is_moving(move) and self._replace_now(move)

        await self._on_disk(lambda: asyncio.run_coroutine_threadsafe(replace(), loop).result())
        cleaner = self._cleaner()
        if is_replaced and cleaner is not None and source is not None and target is not None:
            await cleaner.alter_checkpoint_dir(move.topic_partition, source, target)
        return is_replaced

    def _replace_now(self, move: Move) -> bool:
        replica, partition = move.replica, move.replica.partition
        for _ in range(LAST_COPIES_MAX):
            if replica.is_caught_up:
                break
            self._thread.copy(move)
        if not replica.is_caught_up:
            return False
        replica.take_over_epoch()
        try:
            log = self._logs.replace_current_with_future_log(
                partition.topic_partition, partition.topic_id, now_ms=self._clock.wall_ms()
            )
        except StorageError:
            partition.future_log = self._logs.future_log(partition.topic_partition)
            raise
        partition.replace_log(log)
        return True

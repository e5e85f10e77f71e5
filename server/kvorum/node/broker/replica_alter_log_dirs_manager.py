"""Moves replicas between the log directories of this broker (KIP-113, KIP-858).

Kafka's ReplicaAlterLogDirsManager, and alterReplicaLogDirs of its ReplicaManager.
"""

from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from kvorum.broker.assignments import PartitionKey
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.node.broker.assignments_manager import AssignmentsManager
from kvorum.node.broker.broker_logs import BrokerLogs
from kvorum.node.broker.replica_alter_log_dirs_thread import Move, ReplicaAlterLogDirsThread
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.partition_directory import has_future_name
from kvorum.storage.errors import StorageError
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode

ALL_DIRECTORIES: Final = "*"
LAST_COPIES_MAX: Final = 8
"""The fetches of the latest records that are copied while nothing else goes on."""


class MoveSettings(NamedTuple):
    """The entries of ``log.dirs`` and ``cordoned.log.dirs``, and ``replica.fetch.*``."""

    directories: tuple[str, ...]
    cordoned: tuple[str, ...]
    fetch_bytes_max: int
    backoff_ms: int


class ReplicaAlterLogDirsManager:
    """The replicas that are on their way to another directory."""

    def __init__(
        self,
        broker: ThisBroker,
        settings: MoveSettings,
        logs: BrokerLogs,
        assignments: AssignmentsManager,
        quota: ReplicationQuotaManager,
    ) -> None:
        self._settings = settings
        self._runtime = broker.runtime
        self._logs = logs.manager
        self._disk = logs.disk
        self._cleaner = logs.cleaner
        self._thread = ReplicaAlterLogDirsThread(
            broker,
            assignments,
            quota,
            fetch_bytes_max=settings.fetch_bytes_max,
            backoff_ms=settings.backoff_ms,
            replace=self._replace,
        )

    def shutdown(self) -> None:
        """Copy no longer; the next start goes on."""
        self._thread.close()

    async def alter(
        self, topic_partition: TopicPartition, path: str, partition: Partition | None
    ) -> ErrorCode:
        """Begin to move a replica to a directory, or cancel a move; the caller does one at a time.

        A replica that is not there yet (None) will be made in that directory.
        """
        if not has_future_name(topic_partition):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        target = self._directory(path)
        if not isinstance(target, LogDirectory):
            return target
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

    def has_reported(self, key: PartitionKey) -> bool:
        """Return whether the controller is, or soon will be, told of a replica's next directory."""
        return self._thread.has_reported(key)

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
        now_ms = self._runtime.wall_ms()
        await self._disk.in_thread(
            partial(self._logs.create_future_log, topic_partition, topic_id, now_ms=now_ms)
        )
        await self._cleaner.abort_and_pause_cleaning(topic_partition)
        self.resume(partition)

    async def _cancel(self, partition: Partition) -> None:
        topic_partition = partition.topic_partition
        self.stop((partition.topic_id, topic_partition.partition))
        partition.future_log = None
        now_ms = self._runtime.wall_ms()
        await self._disk.in_thread(
            partial(self._logs.async_delete_future, topic_partition, now_ms=now_ms)
        )

    async def _replace(self, move: Move) -> bool:
        """Replace a current log by its future one, while no thread uses a log."""
        source = self._logs.directory_of(move.topic_partition)
        target = self._logs.future_directory_of(move.topic_partition)
        # The bytes that are durable now need not be waited for then.
        await self._disk.in_thread(move.replica.log.local_log.flush)
        is_replaced = await self._disk.in_loop(
            lambda: self._thread.is_moving(move) and self._replace_now(move)
        )
        if is_replaced and source is not None and target is not None:
            await self._cleaner.alter_checkpoint_dir(move.topic_partition, source, target)
        return is_replaced

    def _replace_now(self, move: Move) -> bool:
        replica, partition = move.replica, move.replica.partition
        for _ in range(LAST_COPIES_MAX):
            if replica.is_caught_up:
                break
            self._thread.copy(move)
        if not replica.is_caught_up:
            return False
        try:
            log = self._logs.replace_current_with_future_log(
                partition.topic_partition, partition.topic_id, now_ms=self._runtime.wall_ms()
            )
        except StorageError:
            partition.future_log = self._logs.future_log(partition.topic_partition)
            raise
        partition.replace_log(log)
        return True

"""Moves replicas between the log directories of this broker (KIP-113, KIP-858).

Kafka's ReplicaAlterLogDirsManager, its thread, and alterReplicaLogDirs of its ReplicaManager.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from kvorum.broker.assignments import PartitionKey
from kvorum.broker.future_replica import FutureReplica, ReassignmentState
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.node.broker.broker_logs import BrokerLogs
from kvorum.node.broker.controller_reports import AssignmentsManager
from kvorum.node.broker.stored_appends import stored
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.coroutines import Signal, other_work
from kvorum.node.events.log_event import LogEvent
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.partition_directory import has_future_name
from kvorum.storage.errors import StorageError
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError

_log = logging.getLogger(__name__)
LAST_COPIES_MAX: Final = 8
"""The fetches of the latest records that are copied while nothing else goes on."""


@dataclass(slots=True, kw_only=True, eq=False)
class Move:
    """A replica on its way, with the ids of its directories (Kafka's PromotionState).

    `is_idle` says that there is nothing to do before the partition changes or the controller has
    answered; `due_ms` is when to go on after an error.
    """

    partition: Partition
    replica: FutureReplica
    current_directory_id: bytes
    next_directory_id: bytes
    state: ReassignmentState = ReassignmentState.NONE
    is_idle: bool = False
    due_ms: float = 0.0

    @property
    def key(self) -> PartitionKey:
        """The topic id and the index."""
        return self.partition.key

    @property
    def topic_partition(self) -> TopicPartition:
        """The name of the partition."""
        return self.partition.topic_partition

    def wake(self) -> None:
        """Look again whether there is something to do."""
        self.is_idle = False


class ReplicaAlterLogDirsThread:
    """Copies one replica after the other, in the order of their names; it runs until `close`.

    `replace` puts a future log in the place of the current one if it has everything; it returns
    whether it did, and raises StorageError.
    """

    def __init__(
        self,
        broker: ThisBroker,
        assignments: AssignmentsManager,
        quota: ReplicationQuotaManager,
        *,
        fetch_bytes_max: int,
        backoff_ms: int,
        replace: Callable[[Move], Awaitable[bool]],
    ) -> None:
        self._runtime = broker.runtime
        self._assignments = assignments
        self._fetch_bytes_max = fetch_bytes_max
        self._backoff_ms = backoff_ms
        self._replace = replace
        self._quota = quota
        self._log_dir_moves: dict[PartitionKey, Move] = {}
        self._in_progress: Move | None = None
        self._woken = Signal(broker.runtime)
        self._watchers: dict[PartitionKey, Callable[[], None]] = {}
        self._task = broker.run(self._run())

    def is_moving(self, move: Move) -> bool:
        """Return whether a move is neither finished nor cancelled."""
        return self._log_dir_moves.get(move.key) is move

    def has_reported(self, key: PartitionKey) -> bool:
        """Return whether a move has reported its next directory, accepted or not."""
        move = self._log_dir_moves.get(key)
        return move is not None and move.state.may_be_inconsistent

    def add(self, move: Move) -> None:
        """Copy a partition's current log to its future one, unless that is under way."""
        if move.key in self._log_dir_moves:
            return

        def wake() -> None:
            move.wake()
            self._woken.set()

        self._log_dir_moves[move.key] = move
        self._watchers[move.key] = wake
        move.partition.watchers.add(wake)
        self._woken.set()

    def copy(self, move: Move) -> None:
        """Copy what one fetch returns; raises CorruptBatchError, StorageError, ProducerError."""
        byte_count = move.replica.copy(
            self._fetch_bytes_max,
            leader_epoch=move.partition.leader_epoch,
            wall_ms=self._runtime.wall_ms(),
        )
        self._quota.record(byte_count, self._runtime.monotonic_ms())

    def remove(self, key: PartitionKey) -> None:
        """Copy a partition no longer; the controller hears that the replica stays where it is."""
        move = self._forget(key)
        if move is not None and move.state.may_be_inconsistent:
            self._assignments.on_assignment(key, move.current_directory_id)

    def close(self) -> None:
        """End, wherever the task is."""
        self._task.close()

    def _forget(self, key: PartitionKey) -> Move | None:
        move = self._log_dir_moves.pop(key, None)
        if move is not None:
            move.partition.watchers.discard(self._watchers.pop(key))
        return move

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            move = self._next()
            if move is None:
                await self._wait()
            else:
                await self._do_work(move)
                await other_work(self._runtime)

    def _next(self) -> Move | None:
        """Return the replica to copy now: the same one as long as there is something to copy."""
        now_ms = self._runtime.monotonic_ms()
        if self._quota.is_quota_exceeded(now_ms):
            return None
        ready = [
            one for one in self._log_dir_moves.values() if not one.is_idle and one.due_ms <= now_ms
        ]
        if self._in_progress not in ready:
            self._in_progress = min(ready, key=lambda one: one.topic_partition, default=None)
        return self._in_progress

    async def _wait(self) -> None:
        """Wait until a replica is to be copied, or a delay is over."""
        now_ms = self._runtime.monotonic_ms()
        due = [one.due_ms for one in self._log_dir_moves.values() if not one.is_idle]
        # The quota holds back the replicas that are due already.
        later = (due_ms for due_ms in due if due_ms > now_ms)
        until_ms = min((now_ms + self._backoff_ms, *later))
        await self._woken.wait(until_ms - now_ms if due else None)

    async def _do_work(self, move: Move) -> None:
        try:
            for log in move.partition.logs:
                await stored(log.writes)
            if not self.is_moving(move):
                # It was cancelled meanwhile, and its future log is gone.
                return
            self.copy(move)
            if move.replica.is_caught_up:
                await self._maybe_promote(move)
        except CorruptBatchError as error:
            # The bytes may be sound when they are read again.
            move.due_ms = self._runtime.monotonic_ms() + self._backoff_ms
            self._complain(move, error)
        except (StorageError, ProducerError) as error:
            # A log that was taken away from under a cancelled move is not a problem.
            if self.is_moving(move):
                self._complain(move, error)
                self.remove(move.key)

    async def _maybe_promote(self, move: Move) -> None:
        """Report to the controller where the replica will be; replace the log once it knows."""
        if move.state is ReassignmentState.ACCEPTED:
            if await self._replace(move):
                self._forget(move.key)
            return
        move.is_idle = True
        if move.state is ReassignmentState.NONE:
            move.state = ReassignmentState.QUEUED
            self._assignments.on_assignment(
                move.key, move.next_directory_id, lambda: self._on_accepted(move)
            )

    def _on_accepted(self, move: Move) -> None:
        move.state = ReassignmentState.ACCEPTED
        move.wake()
        self._woken.set()

    def _complain(self, move: Move, error: Exception) -> None:
        _log.error(
            LogEvent(
                "A replica cannot move to another log directory",
                partition=str(move.topic_partition),
                error=str(error),
            )
        )


class MoveSettings(NamedTuple):
    """The entries of ``log.dirs``, those that are cordoned now, and ``replica.fetch.*``."""

    directories: tuple[str, ...]
    cordoned: Callable[[], Collection[str]]
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
            move = Move(
                partition=partition,
                replica=partition.maybe_create_future_replica(target.future_logs[topic_partition]),
                current_directory_id=source.id,
                next_directory_id=target.id,
            )
            self._thread.add(move)

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
        if not set(named).isdisjoint(self._settings.cordoned()):
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
        self.stop(partition.key)
        partition.future_replica = None
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
        replica, partition = move.replica, move.partition
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
            if self._logs.future_log(partition.topic_partition) is None:
                partition.future_replica = None
            raise
        partition.replace_log(log)
        return True

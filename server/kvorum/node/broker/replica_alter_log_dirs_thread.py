"""A task that copies replicas to other log directories (Kafka's ReplicaAlterLogDirsThread)."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kvorum.broker.assignments import PartitionKey
from kvorum.broker.fetcher.future_replica import FutureReplica, ReassignmentState
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.node.broker.assignments_manager import AssignmentsManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.coroutines import Signal, other_work
from kvorum.node.events.log_event import LogEvent
from kvorum.storage.errors import StorageError
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.errors import CorruptBatchError

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Move:
    """A replica on its way, with the ids of its directories (Kafka's PromotionState).

    `is_idle` says that there is nothing to do before the partition changes or the controller has
    answered; `due_ms` is when to go on after an error.
    """

    replica: FutureReplica
    current_directory_id: bytes
    next_directory_id: bytes
    state: ReassignmentState = ReassignmentState.NONE
    is_idle: bool = False
    due_ms: float = 0.0

    @property
    def key(self) -> PartitionKey:
        """The topic id and the index."""
        partition = self.replica.partition
        return partition.topic_id, partition.topic_partition.partition

    @property
    def topic_partition(self) -> TopicPartition:
        """The name of the partition."""
        return self.replica.partition.topic_partition

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

    def add(self, partition: Partition, current_id: bytes, next_id: bytes) -> None:
        """Copy a partition's current log to its future one, unless that is under way."""
        move = Move(
            replica=FutureReplica(partition),
            current_directory_id=current_id,
            next_directory_id=next_id,
        )
        if move.key in self._log_dir_moves:
            return

        def wake() -> None:
            move.wake()
            self._woken.set()

        self._log_dir_moves[move.key] = move
        self._watchers[move.key] = wake
        partition.watch(wake)
        self._woken.set()

    def copy(self, move: Move) -> None:
        """Copy what one fetch returns; raises CorruptBatchError, StorageError, ProducerError."""
        byte_count = move.replica.copy(self._fetch_bytes_max, wall_ms=self._runtime.wall_ms())
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
            move.replica.partition.unwatch(self._watchers.pop(key))
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

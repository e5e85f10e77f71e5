"""A share partition on the leader of its partition: its state, its keeper, and who waits for it."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol

from kvorum.broker.dead_letter_queue.dead_letter_queue_error import DeadLetterQueueError
from kvorum.broker.dead_letter_queue.dead_letter_records import DeadLetterWriter
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.partition_watchers import PartitionWatchers
from kvorum.broker.share_partition.acknowledgement import ShareAcknowledgementBatch
from kvorum.broker.share_partition.loaded_state import UNINITIALIZED_START_OFFSET
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_partition.share_partition import SharePartition, SharePartitionState
from kvorum.broker.share_partition.state_write import DeadLetter, StateWrite
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.api import RequestError
from kvorum.node.broker.dead_letter_queue.share_group_dlq_manager import ShareGroupDLQManager
from kvorum.node.broker.share_coordinator.persister import Persister
from kvorum.node.broker.share_fetch.share_fetch import AcknowledgeResult
from kvorum.node.broker.share_fetch.share_partition_metrics import SharePartitionMetrics
from kvorum.node.coroutines import Lock, Task, Wait
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime, Timer
from kvorum.node.shield import shield
from kvorum.storage.errors import StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import InvalidRecordError
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest

_FENCED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""The errors after which another leader has the share partition, or none has."""
_log = logging.getLogger(__name__)


class SharePartitionListener(Protocol):
    """The questions of a share partition to its broker, and its news."""

    def settings(self, group_id: str) -> SharePartitionSettings:
        """Return what a group's configuration says at the moment."""
        ...

    async def find_start(self, led: "LedSharePartition") -> int:
        """Return the offset at which a group begins to read a partition.

        Raises RequestError, LeaderRefusesError, StorageError and CorruptBatchError.
        """
        ...

    def on_load_end(self, load_ms: float) -> None:
        """Take note of how long it took to read a state, or to fail to."""
        ...

    def forget(self, led: "LedSharePartition") -> None:
        """Have the next fetch begin with another one: this one is no longer valid."""
        ...


class LedSharePartition:
    """A share partition for as long as this broker leads its partition.

    A higher leader epoch changes nothing, as in Kafka: what members have acquired stays theirs, and
    the state is written in the epoch in which the share partition began. If another broker has led
    meanwhile, and has read the state, that write is refused with FENCED_LEADER_EPOCH.
    """

    def __init__(
        self,
        key: SharePartitionKey,
        replica: Partition,
        listener: SharePartitionListener,
        persister: Persister,
        dead_letter_queue: ShareGroupDLQManager,
        runtime: Runtime,
    ) -> None:
        self.key = key
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        """The leader epoch in which the share partition began."""
        topic = replica.topic_partition.topic
        self.state = SharePartition(
            key.group_id,
            TopicIdPartition(key.topic_id, key.partition, topic),
            self.leader_epoch,
            partial(listener.settings, key.group_id),
        )
        self.watchers = PartitionWatchers()
        """Called when there may be something to acquire, or nothing any more."""
        self.metrics = SharePartitionMetrics()
        self.failure: RequestError | None = None
        """The error upon which the state could not be read."""
        self._persister = persister
        self._dead_letter_queue = dead_letter_queue
        self._runtime = runtime
        self._listener = listener
        self._began_ms = runtime.monotonic_ms()
        self._timer: Timer | None = None
        # Writes are kept in the order in which they are decided.
        self._write_order = Lock(runtime)
        self._copied: list[DeadLetter] = []
        self._is_archiving = False
        replica.watchers.add(self._on_replica_changed)

    @property
    def is_led(self) -> bool:
        """Whether this broker still leads the partition."""
        return self.replica.is_leader

    def close(self) -> None:
        """Give out no records any more, and have those who wait look again."""
        self.state.mark_fenced()
        self.replica.watchers.discard(self._on_replica_changed)
        self._cancel_timer()
        self.watchers.notify()

    def begin_initialization(self) -> None:
        """Begin to read the state, unless that was done; raises RequestError if it has failed."""
        state = self.state.state
        if state in {SharePartitionState.INITIALIZING, SharePartitionState.FENCED}:
            return
        if self.state.begin_initialization():
            Task(self._initialize(), self._on_task_end)

    def acknowledge(
        self, member_id: str, batches: Sequence[ShareAcknowledgementBatch]
    ) -> Coroutine[Wait[Any], Any, AcknowledgeResult]:
        """Take a member's word at once; the coroutine returns what became of it, once written."""
        now_ms = self._runtime.monotonic_ms()
        return self._decided(partial(self.state.acknowledge, member_id, batches, now_ms=now_ms))

    def release_acquired_records(
        self, member_id: str
    ) -> Coroutine[Wait[Any], Any, AcknowledgeResult]:
        """Take from a member what it has at once; see `acknowledge`."""
        return self._decided(partial(self.state.release_acquired_records, member_id))

    def arm(self) -> None:
        """Have locks expire in time: some have begun."""
        deadline_ms = self.state.next_deadline_ms
        self._cancel_timer()
        if deadline_ms is not None:
            self._timer = self._runtime.call_at(deadline_ms, self._expire_locks)

    def _decided(
        self, decide: Callable[[], StateWrite | None]
    ) -> Coroutine[Wait[Any], Any, AcknowledgeResult]:
        """Decide something now; the coroutine returns what became of it."""
        try:
            write = decide()
        except RequestError as error:
            return _answered(AcknowledgeResult.of(error))
        finally:
            self.arm()
        if write is None:
            return _answered(AcknowledgeResult(ErrorCode.NONE))
        return shield(self._runtime, self._write(write))

    async def _initialize(self) -> None:
        """Read the state; a share partition whose state cannot be read is forgotten."""
        try:
            await self._load()
        except RequestError as error:
            self._fail(error)
        except LeaderRefusesError as error:
            self._fail(RequestError.with_default_message(error.code))
        except Exception as error:  # noqa: BLE001 - logged, and answered
            _log.error("A share partition cannot begin: %s", self.key, exc_info=error)
            self._fail(RequestError.with_default_message(_code_of(error)))
        finally:
            self._listener.on_load_end(self._runtime.monotonic_ms() - self._began_ms)
            self.watchers.notify()

    def _fail(self, error: RequestError) -> None:
        self.state.fail_initialization()
        self.failure = error
        self._listener.forget(self)

    async def _load(self) -> None:
        """Begin with the stored state; raises RequestError, and as `find_start` does."""
        key = self.key
        asked = ReadShareGroupStateRequest.PartitionData(key.partition, self.leader_epoch)
        topic = ReadShareGroupStateRequest.ReadStateData(key.topic_id, [asked])
        response = await self._persister.read_state(
            ReadShareGroupStateRequest(key.group_id, [topic])
        )
        result = _result_of(response)
        reset_offset = 0
        has_start = result.start_offset != UNINITIALIZED_START_OFFSET
        if result.error_code == ErrorCode.NONE and not has_start:
            reset_offset = await self._listener.find_start(self)
        self._copy_dead_letters(self.state.initialize(result, reset_offset=reset_offset))

    async def _write(self, write: StateWrite) -> AcknowledgeResult:
        """Have what was decided written; return the result for the member that waits for it."""
        key = self.key
        topic = WriteShareGroupStateRequest.WriteStateData(key.topic_id, [write.data])
        async with self._write_order:
            response = await self._persister.write_state(
                WriteShareGroupStateRequest(key.group_id, [topic])
            )
        result = response.results[0].partitions[0]
        completed = self.state.complete_write(write, result.error_code, result.error_message)
        self._copy_dead_letters(completed.dead_letters)
        self.arm()
        self.watchers.notify()
        told = AcknowledgeResult.of(completed.refusal)
        if told.code in _FENCED:
            self._listener.forget(self)
        return told

    def _copy_dead_letters(self, dead_letters: Sequence[DeadLetter]) -> None:
        """Copy records in the background."""
        for dead_letter in dead_letters:
            Task(self._copy_dead_letter(dead_letter), self._on_task_end)

    async def _copy_dead_letter(self, dead_letter: DeadLetter) -> None:
        """Copy records to the dead-letter queue, then archive them, also if they are not there.

        Those that could not be copied are left to the next leader, if this one has ended.
        """
        replica = self.replica
        writer = DeadLetterWriter(self.key.group_id, replica.topic_partition, dead_letter)
        try:
            await self._dead_letter_queue.enqueue(writer, replica)
        except DeadLetterQueueError as error:
            if self.state.state is SharePartitionState.FENCED:
                return
            _log.error(
                LogEvent(
                    "Records are archived, but are not in the dead-letter queue",
                    group=self.key.group_id,
                    partition=str(replica.topic_partition),
                    first_offset=dead_letter.first_offset,
                    last_offset=dead_letter.last_offset,
                    error=str(error),
                )
            )
        self._copied.append(dead_letter)
        await self._archive_copied()

    async def _archive_copied(self) -> None:
        """Archive dead letters, and those together that were copied during the write before."""
        if self._is_archiving:
            return
        self._is_archiving = True
        try:
            while self._copied:
                write = self.state.complete_dead_letters(self._copied)
                self._copied = []
                await self._write(write)
        finally:
            self._is_archiving = False

    def _begin_write(self, write: StateWrite) -> None:
        """Write in the background."""
        Task(self._write(write), self._on_task_end)

    def _expire_locks(self) -> None:
        self._timer = None
        expired = self.state.expire_locks(self._runtime.monotonic_ms())
        self.metrics.expired_record_count += expired.record_count
        if expired.write is not None:
            self._begin_write(expired.write)
        self.arm()
        self.watchers.notify()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_replica_changed(self) -> None:
        if not self.is_led:
            self._listener.forget(self)

    def _on_task_end(self, result: object) -> None:
        if isinstance(result, Exception):
            _log.error("A share partition failed: %s", self.key, exc_info=result)


def _code_of(error: Exception) -> ErrorCode:
    """Return the code with which an error that hinders the beginning is answered."""
    if isinstance(error, StorageError):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if isinstance(error, InvalidRecordError):
        return error.error_code
    return ErrorCode.UNKNOWN_SERVER_ERROR


async def _answered(result: AcknowledgeResult) -> AcknowledgeResult:
    return result


def _result_of(
    response: ReadShareGroupStateResponse,
) -> ReadShareGroupStateResponse.PartitionResult:
    return response.results[0].partitions[0]

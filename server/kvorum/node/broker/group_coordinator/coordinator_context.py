"""A partition of ``__consumer_offsets`` that this broker leads, and its shard.

Kafka calls it a CoordinatorContext. It is LOADING until the log is replayed (CoordinatorLoader),
then ACTIVE; FAILED if that did not work, until there is a new leader epoch; CLOSED when the
partition is led elsewhere.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from kvorum.broker.partition import Partition
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.coordinator.effects import CancelTimer, Effects, SetTimer, Timeout
from kvorum.coordinator.record import DamagedRecordError
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.groups.records import decode_other_group_record, decode_record
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.api import RequestError
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.group_coordinator.coordinator_partition_writer import (
    OUTSIDE,
    CoordinatorPartitionWriter,
    ForeignRecordsError,
    TransactionWrite,
)
from kvorum.node.deferred_event_queue import DeferredEventQueue
from kvorum.node.event_loop import Runtime, Timer
from kvorum.node.events.log_event import LogEvent
from kvorum.storage.errors import StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError, WireError
from kvorum.wire.records import ControlRecordType, RecordBatch, decode_control_record
from kvorum.wire.records.compacted_batch import converted
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import LegacyMessage, read_entries

LOAD_BYTES: Final = 64 * 1024
"""The part that is read and replayed before others in the event loop have their turn."""
Response = TypeVar("Response")
WriteOperation: TypeAlias = Callable[[GroupCoordinatorShard, int], CoordinatorResult[Response]]
"""Decides on a request or a timeout at a time of day."""
Then: TypeAlias = Callable[[Response | RequestError], None]
"""Takes the response of an operation, or its error. It must not call the coordinator."""
_log = logging.getLogger(__name__)


def replay_batch(shard: GroupCoordinatorShard, batch: RecordBatch, now_ms: int) -> None:
    """Replay the records of a batch, or the marker that ends a transaction.

    Compaction may have taken records, or all of them, out of a batch. Raises
    `DamagedRecordError`.
    """
    try:
        if batch.is_control:
            _replay_control(shard, batch)
        else:
            _replay_data(shard, batch, now_ms)
    except WireError as error:
        raise DamagedRecordError(str(error)) from error
    shard.written(batch.next_offset)


def _replay_data(shard: GroupCoordinatorShard, batch: RecordBatch, now_ms: int) -> None:
    for record in batch.records(UNLIMITED_BYTES):
        if record.key is None:
            raise DamagedRecordError(f"no key at offset {record.offset}")
        other = decode_other_group_record(record.key, record.value)
        if other is not None:
            shard.replay_other_group(other)
            continue
        decoded = decode_record(record.key, record.value)
        if decoded is not None:
            shard.replay(record.offset, batch.producer_id, decoded, now_ms)


def _replay_control(shard: GroupCoordinatorShard, batch: RecordBatch) -> None:
    for record in batch.records():
        kind = decode_control_record(record).type
        if kind in {ControlRecordType.COMMIT, ControlRecordType.ABORT}:
            is_commit = kind is ControlRecordType.COMMIT
            shard.replay_end_transaction_marker(batch.producer_id, is_commit=is_commit)


class LoadEndedError(Exception):
    """The partition is not led here any more: the shard is of no use."""


class CoordinatorLoader:
    """Replays the whole log of a partition, also what is not committed yet; part by part.

    Compaction may have left gaps, at the end as well. `then` is called once, with None or with the
    error: LoadEndedError, DamagedRecordError, WireError, StorageError, or what a record
    causes.
    """

    def __init__(
        self,
        shard: GroupCoordinatorShard,
        partition: Partition,
        runtime: Runtime,
        then: Callable[[Exception | None], None],
    ) -> None:
        self._shard = shard
        self._partition = partition
        self._runtime = runtime
        self._then = then
        self._offset = partition.log.local_log.log_start_offset
        self._is_cancelled = False
        shard.written(self._offset)
        runtime.call_soon(self._turn)

    def cancel(self) -> None:
        """Read no further, and do not call `then`."""
        self._is_cancelled = True

    def _turn(self) -> None:
        if self._is_cancelled:
            return
        try:
            is_over = self._load_part()
        except Exception as error:  # noqa: BLE001 - handed to the caller
            self._then(error)
            return
        if is_over:
            self._then(None)
        else:
            self._runtime.call_soon(self._turn)

    def _load_part(self) -> bool:
        """Replay some batches; return whether the end of the log is reached."""
        if not self._partition.is_leader:
            raise LoadEndedError
        # The replica may have moved to another directory since the last part.
        shard, log = self._shard, self._partition.log.local_log
        end_offset = log.log_end_offset
        is_at_end = self._offset >= end_offset
        data = None if is_at_end else log.read(self._offset, LOAD_BYTES, end_offset=end_offset)
        if not data:
            shard.written(end_offset)
            shard.committed(min(end_offset, self._partition.log.high_watermark))
            return True
        for entry in read_entries(data):
            batch = converted(entry) if isinstance(entry, LegacyMessage) else entry
            replay_batch(shard, batch, self._runtime.wall_ms())
            self._offset = batch.next_offset
            shard.committed(min(self._offset, self._partition.log.high_watermark))
        return False


class CoordinatorTimer:
    """Calls `fire` with a timeout when its time has come; a key has one timer at most."""

    def __init__(self, runtime: Runtime, fire: Callable[[Timeout], None]) -> None:
        self._runtime = runtime
        self._fire = fire
        self._timers: dict[str, Timer] = {}

    def apply(self, change: SetTimer | CancelTimer) -> None:
        """Set, replace or cancel a timer."""
        if isinstance(change, CancelTimer):
            self._cancel(change.key)
            return
        self._cancel(change.timeout.key)
        self._timers[change.timeout.key] = self._runtime.call_at(
            self._runtime.monotonic_ms() + change.delay_ms, partial(self._fired, change.timeout)
        )

    def cancel_all(self) -> None:
        """Cancel every timer."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _cancel(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _fired(self, timeout: Timeout) -> None:
        del self._timers[timeout.key]
        self._fire(timeout)


class CoordinatorState(Enum):
    """The surroundings of a coordinator's partitions."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(slots=True, eq=False)
class CoordinatorWriteEvent(Generic[Response]):
    """An operation from its append until it is committed."""

    response: Response
    then: Then[Response]
    timeout: Timer | None = None
    is_over: bool = False

    def complete(self, error: RequestError | None) -> None:
        """Answer with the response or an error, unless it was answered before."""
        if self.is_over:
            return
        self.is_over = True
        if self.timeout is not None:
            self.timeout.cancel()
        self.then(self.response if error is None else error)

    def expire(self) -> None:
        """Answer that the operation has waited for too long."""
        self.complete(RequestError.with_default_message(ErrorCode.REQUEST_TIMED_OUT))


class CoordinatorContext:
    """Drives the shard of one partition while this broker leads it."""

    def __init__(
        self,
        partition: Partition,
        leader_epoch: int,
        new_shard: Callable[[], GroupCoordinatorShard],
        runtime: Runtime,
        *,
        writer: CoordinatorPartitionWriter,
        commit_timeout_ms: int,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = CoordinatorState.LOADING
        self._new_shard = new_shard
        self._shard = new_shard()
        self._runtime = runtime
        self._writer = writer
        self._commit_timeout_ms = commit_timeout_ms
        self._deferred = DeferredEventQueue[RequestError]()
        self._timer = CoordinatorTimer(runtime, self._on_timer)
        self._loader: CoordinatorLoader | None = None
        self._deleted_topics: list[TopicImage] = []

    @property
    def active_shard(self) -> GroupCoordinatorShard | None:
        """The shard, to be read only; None unless it is loaded."""
        return self._shard if self.state is CoordinatorState.ACTIVE else None

    def load(self) -> None:
        """Begin to load the shard."""
        self.state = CoordinatorState.LOADING
        self._shard = self._new_shard()
        self._loader = CoordinatorLoader(
            self._shard, self.partition, self._runtime, self._on_loaded
        )

    def unload(self) -> None:
        """Answer all who wait with NOT_COORDINATOR, and forget the shard."""
        was_active = self.state is CoordinatorState.ACTIVE
        self.state = CoordinatorState.CLOSED
        if self._loader is not None:
            self._loader.cancel()
        self.partition.unwatch(self._on_change)
        if was_active:
            self._release()

    def read(self, look: Callable[[GroupCoordinatorShard], Response]) -> Response:
        """Return what is committed; raises RequestError while the shard is not loaded."""
        self._demand_active()
        return look(self._shard)

    def write(
        self,
        decide: WriteOperation[Response],
        then: Then[Response | None],
        transaction: TransactionWrite = OUTSIDE,
    ) -> None:
        """Do an operation; call back when everything written so far is committed.

        Raises RequestError, at once, for what the shard refuses and for what cannot be appended.
        """
        self._demand_active()
        shard, now_ms = self._shard, self._runtime.wall_ms()
        result = decide(shard, now_ms)
        self._apply(result.effects)
        if result.error is not None:
            raise result.error
        self._append(result, now_ms, transaction)
        if result.append is not None:
            then = partial(self._end_append, result.append, then)
        self._defer(
            shard.state.timeline.written_offset, CoordinatorWriteEvent(result.response, then)
        )

    def complete_transaction(self, marker: TransactionMarker, then: Then[None]) -> None:
        """Write a marker; call back when it is committed: its offsets are visible then.

        Raises RequestError, at once, for what the log refuses.
        """
        self._demand_active()
        shard, now_ms = self._shard, self._runtime.wall_ms()
        offset = shard.state.timeline.written_offset
        try:
            self._writer.append(marker.batch(now_ms), now_ms, marker.append, offset=offset)
        except ForeignRecordsError:
            self._reload()
            raise
        shard.replay_end_transaction_marker(marker.producer_id, is_commit=marker.is_commit)
        shard.written(offset + 1)
        self._defer(offset + 1, CoordinatorWriteEvent(None, then))

    def _defer(self, offset: int, event: CoordinatorWriteEvent[Response]) -> None:
        """Complete an event when the high watermark has reached `offset`, at once if it has."""
        self._on_high_watermark()
        if self._shard.state.timeline.committed_offset >= offset:
            event.complete(None)
            return
        deadline_ms = self._runtime.monotonic_ms() + self._commit_timeout_ms
        event.timeout = self._runtime.call_at(deadline_ms, event.expire)
        self._deferred.add(offset, event.complete)

    def delete_topics(self, topics: list[TopicImage]) -> None:
        """End the offsets of topics that are gone; a shard that is being loaded does it later."""
        if self.state is CoordinatorState.LOADING:
            self._deleted_topics += topics
        elif self.state is CoordinatorState.ACTIVE:
            self._write_unasked(lambda shard, _: shard.on_topics_deleted(topics))

    def _on_loaded(self, error: Exception | None) -> None:
        if error is None:
            self._activate()
        elif isinstance(error, LoadEndedError):
            self.state = CoordinatorState.FAILED
        else:
            # A record that the shard cannot take must not leave its groups waiting for ever.
            self._fail("could not be loaded", error)
            if not isinstance(error, DamagedRecordError | WireError | StorageError):
                _log.error("An unexpected error while groups were loaded", exc_info=error)

    def _activate(self) -> None:
        self.state = CoordinatorState.ACTIVE
        self.partition.watch(self._on_change)
        self._apply(self._shard.on_loaded(self._runtime.wall_ms()))
        topics, self._deleted_topics = self._deleted_topics, []
        if topics:
            self.delete_topics(topics)

    def _fail(self, problem: str, error: Exception) -> None:
        self.state = CoordinatorState.FAILED
        where = str(self.partition.topic_partition)
        _log.error(LogEvent(f"Groups {problem}", partition=where, error=str(error)))

    def _release(self) -> None:
        """End timers and all that waits: this broker does not coordinate any more."""
        self._deferred.fail_all(RequestError.with_default_message(ErrorCode.NOT_COORDINATOR))
        self._apply(self._shard.on_unloaded(self._runtime.wall_ms()))
        self._timer.cancel_all()

    def _demand_active(self) -> None:
        if self.state is CoordinatorState.LOADING:
            raise RequestError.with_default_message(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is not CoordinatorState.ACTIVE:
            raise RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)

    def _apply(self, effects: Effects) -> None:
        for change in effects.timers:
            self._timer.apply(change)
        for answer in effects.answers:
            answer.send()

    def _append(
        self, result: CoordinatorResult[Response], now_ms: int, transaction: TransactionWrite
    ) -> None:
        """Append the records of a result; take it back if the log refuses them."""
        shard, producer_id = self._shard, transaction.producer.producer_id
        offset = shard.state.timeline.written_offset
        try:
            for records in self._writer.append_records(
                result.records, now_ms, transaction, is_atomic=result.is_atomic, offset=offset
            ):
                for index, record in enumerate(records if result.replay_records else ()):
                    shard.replay(offset + index, producer_id, record, now_ms)
                offset += len(records)
                shard.written(offset)
        except (RequestError, EncodeError) as error:
            # The id of a member, which begins with its client's, may be too long for a record.
            code = error.code if isinstance(error, RequestError) else ErrorCode.UNKNOWN_SERVER_ERROR
            shard.revert(shard.state.timeline.written_offset)
            if result.append is not None:
                self._apply(shard.append_failed(result.append, code, now_ms))
            if isinstance(error, ForeignRecordsError):
                self._reload()
            raise

    def _reload(self) -> None:
        where = str(self.partition.topic_partition)
        _log.error(LogEvent("Groups are loaded again: others have written", partition=where))
        self.partition.unwatch(self._on_change)
        self._release()
        self.load()

    def _on_change(self) -> None:
        # Within an append the shard does not know yet what was appended; it looks afterwards.
        if self._writer.is_writing:
            return
        try:
            self._on_high_watermark()
        except Exception:  # noqa: BLE001 - logged
            # Other watchers of the partition must hear of the change as well.
            _log.exception("An unexpected error while groups were committed")

    def _on_high_watermark(self) -> None:
        """Complete what this coordinator has appended and is committed."""
        if self.state is not CoordinatorState.ACTIVE or not self.partition.is_leader:
            return
        timeline = self._shard.state.timeline
        offset = min(self.partition.log.high_watermark, timeline.written_offset)
        if offset > timeline.committed_offset:
            self._shard.committed(offset)
        self._deferred.complete_up_to(offset)

    def _end_append(
        self, append: Append, then: Then[Response | None], result: Response | RequestError | None
    ) -> None:
        """Report the end of an append to the shard, then call the one who waits."""
        shard, now_ms = self._shard, self._runtime.wall_ms()
        if isinstance(result, RequestError):
            self._apply(shard.append_failed(append, result.code, now_ms))
        else:
            self._apply(shard.append_completed(append, now_ms))
        then(result)

    def _on_timer(self, timeout: Timeout) -> None:
        self._write_unasked(lambda shard, now_ms: shard.on_timeout(timeout, now_ms))

    def _write_unasked(self, decide: WriteOperation[None]) -> None:
        """Do an operation that no client waits for."""
        try:
            self.write(decide, partial(_log_failure, self.partition))
        except RequestError as error:
            _log_failure(self.partition, error)
        except Exception:  # noqa: BLE001 - logged
            # Timers, and the image, go on for other groups.
            _log.exception("An unexpected error while groups were changed in their own time")


def _log_failure(partition: Partition, result: RequestError | None) -> None:
    if result is not None:
        where, error = str(partition.topic_partition), str(result)
        _log.warning(
            LogEvent("Groups were not changed in their own time", partition=where, error=error)
        )

"""A partition of an internal topic that this broker leads, and its shard.

Kafka calls it a CoordinatorContext. It is LOADING until the log is replayed (CoordinatorLoader),
then ACTIVE; FAILED if that did not work, until there is a new leader epoch; CLOSED when the
partition is led elsewhere.
"""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from kvorum.broker.partition import Partition
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.coordinator.effects import Effects, SetTimer
from kvorum.coordinator.record import DamagedRecordError
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.coordinator.shard import ShardT
from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.batch import CoordinatorBatch
from kvorum.node.broker.coordinator.linger import AppendLinger
from kvorum.node.broker.coordinator.loader import CoordinatorLoader, LoadEndedError
from kvorum.node.broker.coordinator.operation_timeouts import OperationTimeouts
from kvorum.node.broker.coordinator.settings import CoordinatorSettings
from kvorum.node.broker.coordinator.timers import CoordinatorTimer
from kvorum.node.broker.coordinator.transaction_write import OUTSIDE, TransactionWrite
from kvorum.node.broker.coordinator.write_event import CoordinatorWriteEvent, Then
from kvorum.node.broker.coordinator.writer import CoordinatorPartitionWriter, ForeignRecordsError
from kvorum.node.deferred_event_queue import DeferredEventQueue
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metrics.sensors import WindowedSensor
from kvorum.node.runtime import Runtime
from kvorum.storage.errors import StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError, WireError
from kvorum.wire.records import RecordData

Response = TypeVar("Response")
WriteOperation: TypeAlias = Callable[[ShardT, int], CoordinatorResult[Response]]
"""Decides on a request or a timeout at a time of day."""
_log = logging.getLogger(__name__)


class CoordinatorState(Enum):
    """The surroundings of a coordinator's partitions."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


class CoordinatorContext(Generic[ShardT]):
    """Drives the shard of one partition while this broker leads it."""

    def __init__(
        self,
        partition: Partition,
        leader_epoch: int,
        new_shard: Callable[[], ShardT],
        runtime: Runtime,
        *,
        settings: CoordinatorSettings,
        load_times_ms: WindowedSensor,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = CoordinatorState.LOADING
        self._new_shard = new_shard
        self._shard = new_shard()
        self._runtime = runtime
        self._load_times_ms = load_times_ms
        self._load_began_ms = runtime.monotonic_ms()
        self._writer = CoordinatorPartitionWriter(partition, runtime, settings)
        self._batch: CoordinatorBatch | None = None
        self._linger = AppendLinger(settings.append_linger_ms, runtime, self._flush_due)
        self._timeouts = OperationTimeouts(runtime, settings.commit_timeout_ms)
        self._deferred = DeferredEventQueue[RequestError]()
        self._timer = CoordinatorTimer(runtime, self._on_timer)
        self._loader: CoordinatorLoader | None = None
        self._when_loaded: list[WriteOperation[ShardT, None]] = []

    @property
    def active_shard(self) -> ShardT | None:
        """The shard, to be read only; None unless it is loaded."""
        return self._shard if self.state is CoordinatorState.ACTIVE else None

    def load(self) -> None:
        """Begin to load the shard."""
        self.state = CoordinatorState.LOADING
        self._load_began_ms = self._runtime.monotonic_ms()
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
        self.partition.watchers.discard(self._on_change)
        if was_active:
            self._release()

    def read(self, look: Callable[[ShardT], Response]) -> Response:
        """Return what is committed; raises RequestError while the shard is not loaded."""
        self._demand_active()
        return look(self._shard)

    def write(
        self,
        decide: WriteOperation[ShardT, Response],
        then: Then[Response | None],
        transaction: TransactionWrite = OUTSIDE,
    ) -> None:
        """Do an operation; call back when everything written so far is committed.

        Raises RequestError, at once, for what the shard refuses. The error of the records, or of
        those that share their batch, is called back.
        """
        self._demand_active()
        shard = self._shard
        now_ms = self._runtime.wall_ms()
        result = decide(shard, now_ms)
        self._apply(result.effects)
        if result.error is not None:
            raise result.error
        if result.append is not None:
            then = partial(self._end_append, shard, result.append, then)
        event = CoordinatorWriteEvent(result.response, then, result.commit_timeout_ms)
        if result.records:
            self._append(result, event, now_ms, transaction)
        elif self._batch is not None:
            self._batch.events.append(event)
            self._timeouts.add(event)
        else:
            self._defer(shard.timeline.written_offset, event)

    def complete_transaction(self, marker: TransactionMarker, then: Then[None]) -> None:
        """End a transaction by its marker, in the shard too; call back when that is committed.

        Raises RequestError, at once, for what the log refuses.
        """
        self._demand_active()
        shard = self._shard
        now_ms = self._runtime.wall_ms()
        offset = shard.timeline.written_offset
        try:
            self._flush()
            self._writer.append(marker.batch(now_ms), now_ms, marker.append, offset=offset)
        except ForeignRecordsError:
            self._reload()
            raise
        shard.replay_end_transaction_marker(marker.producer_id, is_commit=marker.is_commit)
        shard.timeline.written_offset = offset + 1
        self._defer(offset + 1, CoordinatorWriteEvent(None, then))

    def write_unasked(self, decide: WriteOperation[ShardT, None]) -> None:
        """Do an operation that no client waits for; log its failure.

        A shard that is being loaded does it later; a coordinator that has ended does not.
        """
        if self.state is CoordinatorState.LOADING:
            self._when_loaded.append(decide)
            return
        if self.state is CoordinatorState.ACTIVE:
            self._write_unasked(decide, partial(_log_failure, self.partition))

    def _write_unasked(self, decide: WriteOperation[ShardT, None], then: Then[None]) -> None:
        try:
            self.write(decide, then)
        except RequestError as error:
            then(error)
        except Exception:  # noqa: BLE001 - logged
            # Other timers, and the image, go on.
            _log.exception("An unexpected error in an operation that no client waits for")

    def _defer(self, offset: int, event: CoordinatorWriteEvent[Response]) -> None:
        """Complete an event when the high watermark has reached `offset`, at once if it has."""
        self._on_high_watermark()
        if self._shard.timeline.committed_offset >= offset:
            event.complete(None)
            return
        self._deferred.add(offset, event.complete)
        self._timeouts.add(event)

    def _on_loaded(self, error: Exception | None) -> None:
        if error is None:
            self._activate()
        elif isinstance(error, LoadEndedError):
            self.state = CoordinatorState.FAILED
        else:
            # A record that the shard cannot take must not leave its clients waiting for ever.
            self.state = CoordinatorState.FAILED
            where = str(self.partition.topic_partition)
            _log.error(
                LogEvent("A coordinator could not be loaded", partition=where, error=str(error))
            )
            if not isinstance(error, DamagedRecordError | WireError | StorageError):
                _log.error("An unexpected error while a coordinator was loaded", exc_info=error)

    def _activate(self) -> None:
        self.state = CoordinatorState.ACTIVE
        now_ms = self._runtime.monotonic_ms()
        self._load_times_ms.record(now_ms - self._load_began_ms, now_ms)
        self.partition.watchers.add(self._on_change)
        self._apply(self._shard.on_loaded(self._runtime.wall_ms()))
        operations = self._when_loaded
        self._when_loaded = []
        for decide in operations:
            self.write_unasked(decide)

    def _release(self) -> None:
        """End timers and all that waits: this broker does not coordinate any more."""
        error = RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)
        self._deferred.fail_all(error)
        batch = self._take_batch()
        if batch is not None:
            self._fail(batch, error)
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
        self,
        result: CoordinatorResult[Response],
        event: CoordinatorWriteEvent[Response],
        now_ms: int,
        transaction: TransactionWrite,
    ) -> None:
        """Put the records of a result into the batch, which is flushed where it must not wait."""
        shard = self._shard
        try:
            self._put_in_batches(result, now_ms, transaction)
        except Exception as error:
            shard.timeline.revert(shard.timeline.written_offset)
            code = error.code if isinstance(error, RequestError) else ErrorCode.UNKNOWN_SERVER_ERROR
            event.complete(RequestError.with_default_message(code))
            if isinstance(error, ForeignRecordsError):
                self._reload()
            elif not isinstance(error, RequestError | EncodeError):
                raise
            return
        batch = self._batch
        assert batch is not None
        batch.events.append(event)
        self._timeouts.add(event)
        if batch.is_transactional or batch.is_full or self._linger.is_over:
            self._flush_due()

    def _put_in_batches(
        self, result: CoordinatorResult[Response], now_ms: int, transaction: TransactionWrite
    ) -> None:
        """Replay a result's records, and put them into the open batch.

        That is a new one for a transaction, and where the former has no room. Raises RequestError
        where the log refuses the former, and EncodeError before anything is replayed.
        """
        # A client's text may be too long for a record, as one that begins a member's id.
        encoded = [RecordData(one.value_bytes(), one.key_bytes(), now_ms) for one in result.records]
        if transaction is not OUTSIDE:
            self._flush()
        timeline = self._shard.timeline
        size = len(encoded) if result.is_atomic else 1
        for begin in range(0, len(encoded), size):
            records = encoded[begin : begin + size]
            batch = self._batch_with_room(records, transaction)
            if result.replay_records:
                replayed = result.records[begin : begin + size]
                for offset, record in enumerate(replayed, timeline.written_offset):
                    self._shard.replay(offset, transaction.producer.producer_id, record, now_ms)
            batch.add(records)
            timeline.written_offset += len(records)

    def _batch_with_room(
        self, records: Sequence[RecordData], transaction: TransactionWrite
    ) -> CoordinatorBatch:
        """Return the open batch if it has room for records, else a new one."""
        batch = self._batch
        if batch is not None and batch.has_room_for(records):
            return batch
        self._flush()
        offset = self._shard.timeline.written_offset
        batch = CoordinatorBatch(offset, transaction, size_max=self._writer.batch_bytes_max)
        self._batch = batch
        self._linger.begin()
        return batch

    def _take_batch(self) -> CoordinatorBatch | None:
        """Close the open batch, if there is one."""
        batch = self._batch
        self._batch = None
        self._linger.end()
        return batch

    def _flush(self) -> None:
        """Append the open batch; if the log refuses it, fail its operations and raise the error."""
        batch = self._take_batch()
        if batch is None:
            return
        try:
            self._writer.append_batch(batch, self._runtime.wall_ms())
        except RequestError as error:
            self._fail(batch, error)
            raise
        except Exception:
            self._fail(batch, RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR))
            raise
        self._deferred.add(self._shard.timeline.written_offset, batch.complete)
        self._on_high_watermark()

    def _fail(self, batch: CoordinatorBatch, error: RequestError) -> None:
        """Take back what the operations of a batch have changed, and answer them with an error."""
        self._shard.timeline.revert(batch.base_offset)
        batch.complete(error)

    def _flush_due(self) -> None:
        """Append the open batch, whose operations get the error if there is one."""
        try:
            self._flush()
        except ForeignRecordsError:
            self._reload()
        except RequestError:
            return

    def _reload(self) -> None:
        where = str(self.partition.topic_partition)
        _log.error(LogEvent("A coordinator is loaded again: others have written", partition=where))
        self.partition.watchers.discard(self._on_change)
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
            _log.exception("An unexpected error while records of a coordinator were committed")

    def _on_high_watermark(self) -> None:
        """Complete what this coordinator has appended and is committed."""
        if self.state is not CoordinatorState.ACTIVE or not self.partition.is_leader:
            return
        timeline = self._shard.timeline
        batch = self._batch
        appended_offset = timeline.written_offset if batch is None else batch.base_offset
        offset = min(self.partition.log.high_watermark, appended_offset)
        if offset > timeline.committed_offset:
            timeline.commit(offset)
        self._deferred.complete_up_to(offset)

    def _end_append(
        self,
        shard: ShardT,
        append: Append,
        then: Then[Response | None],
        result: Response | RequestError | None,
    ) -> None:
        """Report the end of an append to the shard, then call the one who waits."""
        now_ms = self._runtime.wall_ms()
        if isinstance(result, RequestError):
            self._apply(shard.append_failed(append, result.code, now_ms))
        else:
            self._apply(shard.append_completed(append, now_ms))
        then(result)

    def _on_timer(self, timer: SetTimer) -> None:
        then = partial(self._end_timer, timer)
        self._write_unasked(lambda shard, now_ms: shard.on_timeout(timer.timeout, now_ms), then)

    def _end_timer(self, timer: SetTimer, result: RequestError | None) -> None:
        _log_failure(self.partition, result)
        has_failed = result is not None and result.code is not ErrorCode.NOT_COORDINATOR
        if has_failed and timer.is_retried:
            self._timer.retry(timer)


def _log_failure(partition: Partition, result: RequestError | None) -> None:
    if result is not None:
        where = str(partition.topic_partition)
        _log.warning(
            LogEvent(
                "An operation that no client waits for failed", partition=where, error=str(result)
            )
        )

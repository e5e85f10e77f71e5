"""A partition of an internal topic that this broker leads, and its shard.

Kafka calls it a CoordinatorContext. It is LOADING until the log is replayed (CoordinatorLoader),
then ACTIVE; FAILED if that did not work, until there is a new leader epoch; CLOSED when the
partition is led elsewhere.
"""

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from kvorum.broker.partition import Partition
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.coordinator.effects import Effects, Timeout
from kvorum.coordinator.record import DamagedRecordError
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.coordinator.shard import ShardT
from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.loader import CoordinatorLoader, LoadEndedError
from kvorum.node.broker.coordinator.timers import CoordinatorTimer
from kvorum.node.broker.coordinator.write_event import CoordinatorWriteEvent, Then
from kvorum.node.broker.coordinator.writer import (
    OUTSIDE,
    CoordinatorPartitionWriter,
    ForeignRecordsError,
    TransactionWrite,
)
from kvorum.node.deferred_event_queue import DeferredEventQueue
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.storage.errors import StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError, WireError

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
        self._when_loaded: list[WriteOperation[ShardT, None]] = []

    @property
    def active_shard(self) -> ShardT | None:
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

        Raises RequestError, at once, for what the shard refuses and for what cannot be appended.
        """
        self._demand_active()
        shard = self._shard
        now_ms = self._runtime.wall_ms()
        result = decide(shard, now_ms)
        self._apply(result.effects)
        if result.error is not None:
            raise result.error
        self._append(result, now_ms, transaction)
        if result.append is not None:
            then = partial(self._end_append, result.append, then)
        self._defer(shard.timeline.written_offset, CoordinatorWriteEvent(result.response, then))

    def complete_transaction(self, marker: TransactionMarker, then: Then[None]) -> None:
        """End a transaction by its marker, in the shard too; call back when that is committed.

        Raises RequestError, at once, for what the log refuses.
        """
        self._demand_active()
        shard = self._shard
        now_ms = self._runtime.wall_ms()
        offset = shard.timeline.written_offset
        try:
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
        if self.state is not CoordinatorState.ACTIVE:
            return
        try:
            self.write(decide, partial(_log_failure, self.partition))
        except RequestError as error:
            _log_failure(self.partition, error)
        except Exception:  # noqa: BLE001 - logged
            # Other timers, and the image, go on.
            _log.exception("An unexpected error in an operation that no client waits for")

    def _defer(self, offset: int, event: CoordinatorWriteEvent[Response]) -> None:
        """Complete an event when the high watermark has reached `offset`, at once if it has."""
        self._on_high_watermark()
        if self._shard.timeline.committed_offset >= offset:
            event.complete(None)
            return
        deadline_ms = self._runtime.monotonic_ms() + self._commit_timeout_ms
        event.timeout = self._runtime.call_at(deadline_ms, event.expire)
        self._deferred.add(offset, event.complete)

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
        self.partition.watch(self._on_change)
        self._apply(self._shard.on_loaded(self._runtime.wall_ms()))
        operations = self._when_loaded
        self._when_loaded = []
        for decide in operations:
            self.write_unasked(decide)

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
        shard = self._shard
        producer_id = transaction.producer.producer_id
        offset = shard.timeline.written_offset
        try:
            for records in self._writer.append_records(
                result.records, now_ms, transaction, is_atomic=result.is_atomic, offset=offset
            ):
                for index, record in enumerate(records if result.replay_records else ()):
                    shard.replay(offset + index, producer_id, record, now_ms)
                offset += len(records)
                shard.timeline.written_offset = offset
        except (RequestError, EncodeError) as error:
            # A client's text may be too long for a record, as one that begins a member's id.
            code = error.code if isinstance(error, RequestError) else ErrorCode.UNKNOWN_SERVER_ERROR
            shard.timeline.revert(shard.timeline.written_offset)
            if result.append is not None:
                self._apply(shard.append_failed(result.append, code, now_ms))
            if isinstance(error, ForeignRecordsError):
                self._reload()
            raise

    def _reload(self) -> None:
        where = str(self.partition.topic_partition)
        _log.error(LogEvent("A coordinator is loaded again: others have written", partition=where))
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
            _log.exception("An unexpected error while records of a coordinator were committed")

    def _on_high_watermark(self) -> None:
        """Complete what this coordinator has appended and is committed."""
        if self.state is not CoordinatorState.ACTIVE or not self.partition.is_leader:
            return
        timeline = self._shard.timeline
        offset = min(self.partition.log.high_watermark, timeline.written_offset)
        if offset > timeline.committed_offset:
            timeline.commit(offset)
        self._deferred.complete_up_to(offset)

    def _end_append(
        self, append: Append, then: Then[Response | None], result: Response | RequestError | None
    ) -> None:
        """Report the end of an append to the shard, then call the one who waits."""
        shard = self._shard
        now_ms = self._runtime.wall_ms()
        if isinstance(result, RequestError):
            self._apply(shard.append_failed(append, result.code, now_ms))
        else:
            self._apply(shard.append_completed(append, now_ms))
        then(result)

    def _on_timer(self, timeout: Timeout) -> None:
        self.write_unasked(lambda shard, now_ms: shard.on_timeout(timeout, now_ms))


def _log_failure(partition: Partition, result: RequestError | None) -> None:
    if result is not None:
        where = str(partition.topic_partition)
        _log.warning(
            LogEvent(
                "An operation that no client waits for failed", partition=where, error=str(result)
            )
        )

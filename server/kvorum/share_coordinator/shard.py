"""One shard of the share coordinator (Kafka's ShareCoordinatorShard)."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Protocol, TypeVar

from kvorum.coordinator.effects import Effects, Timeout
from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import Append, CoordinatorResult
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.coordinator.timeline import Timeline, TimelineMap
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.share_coordinator.checks import (
    NEGATIVE_LEADER_EPOCH,
    NEGATIVE_PARTITION,
    NEGATIVE_STATE_EPOCH,
    UNINITIALIZED_READ,
    UNINITIALIZED_WRITE,
    check_initialized,
    check_leader_epoch,
    check_not_negative,
    check_partition_exists,
    check_state_epoch,
)
from kvorum.share_coordinator.kept_state import KeptState
from kvorum.share_coordinator.offsets_manager import ShareCoordinatorOffsetsManager
from kvorum.share_coordinator.persister_state_batch import persister_state_batches
from kvorum.share_coordinator.persister_state_batch_combiner import combined_state_batches
from kvorum.share_coordinator.records import (
    decode_record,
    share_partition_key,
    share_snapshot_record,
    share_state_tombstone,
    share_update_record,
    state_of_snapshot,
    state_of_update,
)
from kvorum.share_coordinator.settings import ShareCoordinatorSettings
from kvorum.share_coordinator.share_group_offset import (
    UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
    UNINITIALIZED_START_OFFSET,
    ShareGroupOffset,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateResponse
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state import ReadShareGroupStateResponse
from kvorum.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryResponse
from kvorum.wire.messages.share_snapshot_key import ShareSnapshotKey
from kvorum.wire.messages.share_snapshot_value import ShareSnapshotValue
from kvorum.wire.messages.share_update_key import ShareUpdateKey
from kvorum.wire.messages.share_update_value import ShareUpdateValue
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

ResponseT = TypeVar("ResponseT")
ResponseT_co = TypeVar("ResponseT_co", covariant=True)


class _NewResponse(Protocol[ResponseT_co]):
    """The class of a response for one share partition."""

    def __call__(self, partition: int, error_code: int, error_message: str | None) -> ResponseT_co:
        """Return a response with a code."""
        ...


class ShareCoordinatorShard:
    """The state of the share partitions of one partition of ``__share_group_state``.

    `image` returns the newest metadata of the broker. `states` and `offsets` may be read, for
    tests; only a shard changes them.
    """

    def __init__(
        self, settings: ShareCoordinatorSettings, image: Callable[[], MetadataImage]
    ) -> None:
        self._settings = settings
        self._image = image
        self.timeline = Timeline()
        self.states = TimelineMap[SharePartitionKey, KeptState](self.timeline)
        self.offsets = ShareCoordinatorOffsetsManager(self.timeline)

    # --- the log ---

    @property
    def needs_latest_records_alone(self) -> bool:
        """Be False: an update changes what earlier records say."""
        return False

    def load_record(
        self, offset: int, producer_id: int, key: bytes, value: bytes | None, now_ms: int
    ) -> None:
        """Decode and apply a record of the log; skip one of an unknown type.

        Raises `DamagedRecordError` for one that cannot be read, `DisorderedBatchError` for one that
        cannot be applied.
        """
        record = decode_record(key, value)
        if record is not None:
            self.replay(offset, producer_id, record, now_ms)

    def replay(self, offset: int, producer_id: int, record: CoordinatorRecord, now_ms: int) -> None:
        """Apply a record; raises `DisorderedBatchError`."""
        del producer_id, now_ms
        if isinstance(record.key, ShareUpdateKey):
            assert isinstance(record.value, ShareUpdateValue)
            self._replay_update(share_partition_key(record.key), record.value)
            return
        assert isinstance(record.key, ShareSnapshotKey)
        key = share_partition_key(record.key)
        if record.value is None:
            self.states.remove(key)
            self.offsets.tombstone_written(key, offset)
            return
        assert isinstance(record.value, ShareSnapshotValue)
        self._replay_snapshot(key, record.value)
        self.offsets.snapshot_written(key, offset)

    def replay_end_transaction_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """Do nothing: no transaction writes to this topic."""

    def on_loaded(self, now_ms: int) -> Effects:
        """Begin to lead."""
        del now_ms
        return Effects()

    def on_unloaded(self, now_ms: int) -> Effects:
        """Cease to lead; no request has a promise here."""
        del now_ms
        return Effects()

    def on_timeout(self, timeout: Timeout, now_ms: int) -> CoordinatorResult[None]:
        """Refuse: a shard sets no timer, what it does from time to time is asked for."""
        del now_ms
        raise TypeError(f"{timeout} is no timeout of share partitions")

    def append_completed(self, append: Append, now_ms: int) -> Effects:
        """Do nothing: no result waits for its records here."""
        del append, now_ms
        return Effects()

    def append_failed(self, append: Append, error: ErrorCode, now_ms: int) -> Effects:
        """Do nothing: no result waits for its records here."""
        del append, error, now_ms
        return Effects()

    # --- requests ---

    def initialize_state(
        self,
        key: SharePartitionKey,
        wanted: InitializeShareGroupStateRequest.PartitionData,
        now_ms: int,
    ) -> CoordinatorResult[InitializeShareGroupStateResponse.PartitionResult]:
        """Begin the state of a share partition, or begin it again with a later state epoch."""
        kept = self.states.get(key)
        try:
            check_not_negative(key.partition, NEGATIVE_PARTITION)
            check_not_negative(wanted.state_epoch, NEGATIVE_STATE_EPOCH)
            if kept is not None:
                check_state_epoch(kept, wanted.state_epoch)
            check_partition_exists(self._image(), key)
        except RequestError as error:
            return _refused(InitializeShareGroupStateResponse.PartitionResult, key, error)
        is_unknown = wanted.start_offset == UNINITIALIZED_START_OFFSET
        state = ShareGroupOffset(
            snapshot_epoch=0 if kept is None else kept.state.snapshot_epoch + 1,
            state_epoch=wanted.state_epoch,
            leader_epoch=0,
            start_offset=wanted.start_offset,
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT if is_unknown else 0,
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )
        response = InitializeShareGroupStateResponse.PartitionResult(key.partition)
        return _written([share_snapshot_record(key, state)], response)

    def write_state(
        self, key: SharePartitionKey, wanted: WriteShareGroupStateRequest.PartitionData, now_ms: int
    ) -> CoordinatorResult[WriteShareGroupStateResponse.PartitionResult]:
        """Keep what has changed in a share partition; its epochs stay as they are.

        Raises `DisorderedBatchError`.
        """
        try:
            check_not_negative(key.partition, NEGATIVE_PARTITION)
            check_not_negative(wanted.leader_epoch, NEGATIVE_LEADER_EPOCH)
            check_not_negative(wanted.state_epoch, NEGATIVE_STATE_EPOCH)
            kept = check_initialized(self.states.get(key), UNINITIALIZED_WRITE)
            check_leader_epoch(kept, wanted.leader_epoch)
            check_state_epoch(kept, wanted.state_epoch)
            check_partition_exists(self._image(), key)
        except RequestError as error:
            return _refused(WriteShareGroupStateResponse.PartitionResult, key, error)
        change = kept.state.change(
            start_offset=wanted.start_offset,
            delivery_complete_count=wanted.delivery_complete_count,
            state_batches=persister_state_batches(wanted.state_batches),
        )
        record = self._record_of_change(key, kept, change, now_ms)
        return _written([record], WriteShareGroupStateResponse.PartitionResult(key.partition))

    def read_state(
        self, key: SharePartitionKey, leader_epoch: int, now_ms: int
    ) -> CoordinatorResult[ReadShareGroupStateResponse.PartitionResult]:
        """Read the state for a leader of the partition, whose epoch is kept if it is a new one."""
        try:
            check_not_negative(key.partition, NEGATIVE_PARTITION)
            check_not_negative(leader_epoch, NEGATIVE_LEADER_EPOCH)
            kept = check_initialized(self.states.get(key), UNINITIALIZED_READ)
            check_leader_epoch(kept, leader_epoch)
            check_partition_exists(self._image(), key)
        except RequestError as error:
            return _refused(ReadShareGroupStateResponse.PartitionResult, key, error)
        state = kept.state
        response = ReadShareGroupStateResponse.PartitionResult(
            key.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[
                ReadShareGroupStateResponse.StateBatch(*one) for one in state.state_batches
            ],
        )
        if kept.leader_epoch_max == leader_epoch:
            return _written([], response)
        change = replace(state, leader_epoch=leader_epoch, state_batches=())
        return _written([self._record_of_change(key, kept, change, now_ms)], response)

    def read_state_summary(
        self, key: SharePartitionKey
    ) -> CoordinatorResult[ReadShareGroupStateSummaryResponse.PartitionResult]:
        """Read the start offset of a share partition, -1 of one that is unknown."""
        try:
            check_not_negative(key.partition, NEGATIVE_PARTITION)
            check_partition_exists(self._image(), key)
        except RequestError as error:
            return _refused(ReadShareGroupStateSummaryResponse.PartitionResult, key, error)
        response = ReadShareGroupStateSummaryResponse.PartitionResult(
            key.partition,
            start_offset=UNINITIALIZED_START_OFFSET,
            delivery_complete_count=UNINITIALIZED_DELIVERY_COMPLETE_COUNT,
        )
        kept = self.states.get(key)
        if kept is not None:
            response.state_epoch = kept.state.state_epoch
            response.leader_epoch = kept.state.leader_epoch
            response.start_offset = kept.state.start_offset
            response.delivery_complete_count = kept.state.delivery_complete_count
        return _written([], response)

    def delete_state(
        self, key: SharePartitionKey
    ) -> CoordinatorResult[DeleteShareGroupStateResponse.PartitionResult]:
        """Forget a share partition; one that is unknown is forgotten already."""
        try:
            check_not_negative(key.partition, NEGATIVE_PARTITION)
            check_partition_exists(self._image(), key)
        except RequestError as error:
            return _refused(DeleteShareGroupStateResponse.PartitionResult, key, error)
        is_known = self.states.get(key) is not None
        records = [share_state_tombstone(key)] if is_known else []
        return _written(records, DeleteShareGroupStateResponse.PartitionResult(key.partition))

    # --- upkeep ---

    def last_redundant_offset(self) -> CoordinatorResult[int]:
        """Return the offset before which no record is needed; no response where all are."""
        return CoordinatorResult(effects=Effects(), response=self.offsets.last_redundant_offset())

    def snapshot_cold_partitions(self, now_ms: int) -> CoordinatorResult[None]:
        """Write another snapshot of each share partition whose last one is old.

        Nothing is written while each last one was such a snapshot: no partition has changed.
        """
        states = [(key, kept.state) for key, kept in self.states.items()]
        if all(state.create_timestamp_ms != state.write_timestamp_ms for _, state in states):
            return _each_by_itself([])
        newest_ms = now_ms - self._settings.cold_partition_snapshot_interval_ms
        return _each_by_itself(
            share_snapshot_record(
                key,
                replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms),
            )
            for key, state in states
            if state.write_timestamp_ms <= newest_ms
        )

    def on_topics_deleted(self, topic_ids: Collection[bytes]) -> CoordinatorResult[None]:
        """Forget the share partitions of topics that are gone."""
        return _each_by_itself(
            share_state_tombstone(key)
            for key, _ in self.states.items()
            if key.topic_id in topic_ids
        )

    # --- steps ---

    def _record_of_change(
        self, key: SharePartitionKey, kept: KeptState, change: ShareGroupOffset, now_ms: int
    ) -> CoordinatorRecord:
        """Return an update, or the snapshot that is due instead of one more."""
        if kept.update_count >= self._settings.update_records_per_snapshot:
            state = replace(
                kept.state.merged(change),
                snapshot_epoch=kept.state.snapshot_epoch + 1,
                create_timestamp_ms=now_ms,
                write_timestamp_ms=now_ms,
            )
            return share_snapshot_record(key, state)
        batches = combined_state_batches((), change.state_batches, change.start_offset)
        return share_update_record(key, replace(change, state_batches=batches))

    def _replay_snapshot(self, key: SharePartitionKey, value: ShareSnapshotValue) -> None:
        kept = self.states.get(key)
        state = state_of_snapshot(value)
        updates_per_snapshot = self._settings.update_records_per_snapshot
        self.states.set(
            key,
            KeptState.first(state)
            if kept is None
            else kept.after_snapshot(state, updates_per_snapshot),
        )

    def _replay_update(self, key: SharePartitionKey, value: ShareUpdateValue) -> None:
        kept = self.states.get(key)
        change = state_of_update(value)
        self.states.set(
            key,
            KeptState.first(change, update_count=1) if kept is None else kept.after_update(change),
        )


def _written(
    records: Iterable[CoordinatorRecord], response: ResponseT
) -> CoordinatorResult[ResponseT]:
    return CoordinatorResult(effects=Effects(), response=response, records=tuple(records))


def _each_by_itself(records: Iterable[CoordinatorRecord]) -> CoordinatorResult[None]:
    """Return records of different share partitions, which need not be in one batch."""
    return CoordinatorResult(effects=Effects(), records=tuple(records), is_atomic=False)


def _refused(
    new_response: _NewResponse[ResponseT], key: SharePartitionKey, error: RequestError
) -> CoordinatorResult[ResponseT]:
    return _written([], new_response(key.partition, error.code, error.message))

"""The records of one partition for one share group, on the partition's leader.

Kafka's SharePartition (KIP-932).
"""

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Final

from kvorum.broker.share_partition.acknowledgement import Acknowledgement, ShareAcknowledgementBatch
from kvorum.broker.share_partition.acquisition import (
    Acquisition,
    FetchedRecords,
    ShareAcquiredRecords,
    ShareAcquirer,
)
from kvorum.broker.share_partition.fetch_lock import FetchLock, FetchLockUse
from kvorum.broker.share_partition.in_flight_records import InFlightRecords
from kvorum.broker.share_partition.loaded_state import load
from kvorum.broker.share_partition.persister_error import persister_error
from kvorum.broker.share_partition.record_state import RecordState
from kvorum.broker.share_partition.release import LockExpiry, release_acquired
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_partition.state_write import (
    CompletedWrite,
    DeadLetter,
    ExpiredLocks,
    StateChange,
    StateWrite,
)
from kvorum.broker.share_partition.transitions import complete, take_back
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.read_share_group_state import ReadShareGroupStateResponse
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from kvorum.wire.uuid_text import uuid_to_text


class SharePartitionState(Enum):
    """The stages of a share partition."""

    EMPTY = "EMPTY"
    INITIALIZING = "INITIALIZING"
    ACTIVE = "ACTIVE"
    FAILED = "FAILED"
    FENCED = "FENCED"


class SharePartition:
    """The records in flight, from the first that is not complete to the last that was delivered.

    `settings` returns what holds at the moment: a group's configuration may change. Times are in
    milliseconds of one clock that never goes back.
    """

    def __init__(
        self,
        group_id: str,
        partition: TopicIdPartition,
        leader_epoch: int,
        settings: Callable[[], SharePartitionSettings],
    ) -> None:
        self.group_id: Final = group_id
        self.partition: Final = partition
        self.leader_epoch: Final = leader_epoch
        self._settings = settings
        self._state = SharePartitionState.EMPTY
        self._state_epoch = 0
        self._records = InFlightRecords()
        self._fetch_lock = FetchLock()

    @property
    def state(self) -> SharePartitionState:
        """The current stage; only an ACTIVE share partition has records to acquire."""
        return self._state

    @property
    def start_offset(self) -> int:
        """The first offset that may still be delivered."""
        return self._records.start_offset

    @property
    def end_offset(self) -> int:
        """The last offset in flight; the start offset without one."""
        return self._records.end_offset

    @property
    def records(self) -> InFlightRecords:
        """The records in flight, to be counted and looked at."""
        return self._records

    @property
    def next_deadline_ms(self) -> float | None:
        """The time at which `expire_locks` is due; None while no member has records."""
        return self._records.locks.next_deadline_ms

    def begin_initialization(self) -> bool:
        """Return whether the state has to be read now; it need not be if it has been.

        Raises RequestError: LEADER_NOT_AVAILABLE while it is being read, or when the share
        partition is fenced, UNKNOWN_SERVER_ERROR if it could not be read.
        """
        match self._state:
            case SharePartitionState.ACTIVE:
                return False
            case SharePartitionState.FAILED:
                raise RequestError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"Share partition failed to load {self._name}",
                )
            case SharePartitionState.INITIALIZING:
                raise RequestError(
                    ErrorCode.LEADER_NOT_AVAILABLE,
                    f"Share partition is already initializing {self._name}",
                )
            case SharePartitionState.FENCED:
                raise self._fenced()
            case SharePartitionState.EMPTY:
                self._state = SharePartitionState.INITIALIZING
                return True

    def initialize(
        self, result: ReadShareGroupStateResponse.PartitionResult, *, reset_offset: int
    ) -> tuple[DeadLetter, ...]:
        """Begin with a stored state; return the dead letters that were not completed before.

        `reset_offset` is where a group begins whose state has no start offset (-1), by its
        ``share.auto.offset.reset``. Raises RequestError: with the error of the result as the
        persister's users see it, UNKNOWN_SERVER_ERROR for a state that cannot be, and
        LEADER_NOT_AVAILABLE if the share partition was fenced meanwhile.
        """
        if self._state is SharePartitionState.FENCED:
            raise self._fenced()
        refusal = persister_error(result.error_code, result.error_message)
        if refusal is not None:
            self.fail_initialization()
            raise refusal
        limit = self._settings().delivery_count_limit
        try:
            dead_letters = load(self._records, result, reset_offset, delivery_count_limit=limit)
        except ValueError as impossible:
            self.fail_initialization()
            raise RequestError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Failed to initialize the share partition {self._name}",
            ) from impossible
        self._state_epoch = result.state_epoch
        self._state = SharePartitionState.ACTIVE
        return dead_letters

    def fail_initialization(self) -> None:
        """Give up: the stored state, or the offset to begin at, cannot be had."""
        if self._state is not SharePartitionState.FENCED:
            self._state = SharePartitionState.FAILED

    def mark_fenced(self) -> None:
        """Have nothing acquired here any more."""
        self._state = SharePartitionState.FENCED

    def next_fetch_offset(self) -> int:
        """Return from which offset on the log is to be read for the next fetch."""
        return self._records.next_fetch_offset()

    def can_acquire_records(self) -> bool:
        """Return whether something is available, or there is room for more in flight."""
        records = self._records
        if records.next_fetch_offset() != records.end_offset + 1:
            return True
        return records.record_count < self._settings().record_locks_max

    def maybe_acquire_fetch_lock(self, fetch_id: Hashable, now_ms: float) -> bool:
        """Give the fetch lock to a fetch, if it is free and the share partition is active."""
        is_active = self._state is SharePartitionState.ACTIVE
        return is_active and self._fetch_lock.acquire(fetch_id, now_ms)

    def release_fetch_lock(self, now_ms: float) -> FetchLockUse:
        """Free the fetch lock; return how it was used."""
        return self._fetch_lock.release(now_ms)

    def acquire(
        self,
        acquirer: ShareAcquirer,
        fetched: FetchedRecords,
        *,
        max_records: int,
        now_ms: float,
    ) -> ShareAcquiredRecords:
        """Give a member available records among those that were read, and new ones.

        Nothing is given by a share partition that is not active, or beyond its records in flight.
        Records of aborted transactions are archived instead, if `fetched` has any.
        """
        batches = fetched.batches
        if (
            self._state is not SharePartitionState.ACTIVE
            or max_records <= 0
            or not batches
            or batches[-1].last_offset < self._records.start_offset
        ):
            return ShareAcquiredRecords([], 0)
        acquisition = Acquisition(self._records, self._settings(), acquirer, fetched, now_ms)
        return acquisition.run(max_records)

    def acknowledge(
        self, member_id: str, batches: Iterable[ShareAcknowledgementBatch], *, now_ms: float
    ) -> StateWrite | None:
        """Take a member's word for records that it has; return what has to be written.

        The member is answered when that is done, or at once if it is nothing. Each batch has at
        least one type, and one for each of its offsets if it has more. Raises RequestError, and
        then nothing is changed but renewed locks: INVALID_RECORD_STATE for records that the member
        does not have, INVALID_REQUEST for those that are not in flight and for unknown types.
        """
        acknowledgement = Acknowledgement(self._records, self._settings(), member_id, now_ms)
        try:
            for batch in batches:
                acknowledgement.acknowledge(batch)
        except RequestError:
            take_back(self._records, tuple(acknowledgement.transitions.changes))
            raise
        return self._write_of_transitions(tuple(acknowledgement.transitions.changes))

    def release_acquired_records(self, member_id: str) -> StateWrite | None:
        """Release all that a member has: its session has ended; return what has to be written."""
        changes = release_acquired(self._records, self._settings(), member_id)
        return self._write_of_transitions(changes)

    def expire_locks(self, now_ms: float) -> ExpiredLocks:
        """Release the records whose locks have expired."""
        expiry = LockExpiry(self._records, self._settings())
        record_count = 0
        for lock in self._records.locks.expired(now_ms):
            expiry.release(lock)
            record_count += lock.record_count
        if not expiry.changes:
            return ExpiredLocks(None, record_count)
        data = self._data(expiry.changes)
        write = StateWrite(data, dead_letters=tuple(expiry.dead_letters))
        return ExpiredLocks(write, record_count)

    def move_log_start(self, log_start_offset: int) -> None:
        """Take note of the first offset of the log, before which no record can be delivered."""
        self._records.move_log_start(log_start_offset)

    def complete_write(
        self, write: StateWrite, error_code: int, error_message: str | None
    ) -> CompletedWrite:
        """Act on the end of a write, with the error that the persister has for the partition."""
        records = self._records
        refusal = persister_error(error_code, error_message)
        if refusal is not None and write.transitions:
            take_back(records, write.transitions)
            return CompletedWrite(refusal, ())
        dead_letters = complete(records, write.transitions)
        records.forget_completed()
        return CompletedWrite(refusal, (*dead_letters, *write.dead_letters))

    def complete_dead_letters(self, dead_letters: Iterable[DeadLetter]) -> StateWrite:
        """Archive records that are in the dead-letter queue, or could not be; return the write."""
        return StateWrite(self._data([self._archived(one) for one in dead_letters]))

    def _archived(self, dead_letter: DeadLetter) -> StateChange:
        records = self._records
        first_offset, last_offset, delivery_count, _, batch = dead_letter
        for run in batch.runs_between(first_offset, last_offset):
            run.state.archive()
        records.delivery_complete_count += records.count_from_start(first_offset, last_offset)
        return StateChange(batch, first_offset, last_offset, RecordState.ARCHIVED, delivery_count)

    @property
    def _name(self) -> str:
        """The group and the partition as Kafka's messages have them."""
        topic_id = uuid_to_text(self.partition.topic_id)
        return f"{self.group_id}-{topic_id}:{self.partition.topic}-{self.partition.partition}"

    def _fenced(self) -> RequestError:
        return RequestError(
            ErrorCode.LEADER_NOT_AVAILABLE, f"Share partition is fenced {self._name}"
        )

    def _write_of_transitions(self, changes: tuple[StateChange, ...]) -> StateWrite | None:
        return StateWrite(self._data(changes), changes) if changes else None

    def _data(self, changes: Iterable[StateChange]) -> WriteShareGroupStateRequest.PartitionData:
        return WriteShareGroupStateRequest.PartitionData(
            self.partition.partition,
            self._state_epoch,
            self.leader_epoch,
            self._records.start_offset,
            self._records.delivery_complete_count,
            [change.state_batch for change in changes],
        )

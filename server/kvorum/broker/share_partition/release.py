"""Records that are taken from a member: it has left, or its time is over."""

from kvorum.broker.share_partition.acquisition_lock import AcquisitionLock
from kvorum.broker.share_partition.in_flight_batch import InFlightBatch, RecordRun
from kvorum.broker.share_partition.in_flight_records import InFlightRecords
from kvorum.broker.share_partition.record_state import TERMINAL_STATES, RecordState
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_partition.state_write import DeadLetter, DeadLetterCause, StateChange
from kvorum.broker.share_partition.transitions import Transitions


def release_acquired(
    records: InFlightRecords, settings: SharePartitionSettings, member_id: str
) -> tuple[StateChange, ...]:
    """Begin the release of all that a member has; what lies before the start is archived."""
    transitions = Transitions(records, settings)
    for batch in records.batches:
        if batch.offset_states is None:
            state = batch.state
            if state.state is not RecordState.ACQUIRED or state.member_id != member_id:
                continue
            if records.has_start_within(batch.first_offset, batch.last_offset):
                batch.split(records.locks)
        for run in batch.runs:
            if run.state.state is RecordState.ACQUIRED and run.state.member_id == member_id:
                transitions.begin(batch, run, _released(records, run.last_offset))
    return tuple(transitions.changes)


class LockExpiry:
    """The release of records whose locks have expired, without a wait for the write."""

    def __init__(self, records: InFlightRecords, settings: SharePartitionSettings) -> None:
        self._records = records
        self._settings = settings
        self.changes: list[StateChange] = []
        self.dead_letters: list[DeadLetter] = []

    def release(self, lock: AcquisitionLock) -> None:
        """Release the records of one lock that are still acquired."""
        records = self._records
        floor = records.batches.floor(lock.first_offset)
        if floor is None:
            return
        for batch in records.batches.begun_between(floor.first_offset, lock.last_offset):
            if batch.offset_states is None:
                state = batch.state
                if state.state is not RecordState.ACQUIRED:
                    continue
                if not records.has_start_within(batch.first_offset, batch.last_offset):
                    self._release(batch, RecordRun(batch.first_offset, batch.last_offset, state))
                    continue
                batch.split(records.locks)
            for run in batch.runs_between(lock.first_offset, lock.last_offset):
                if run.state.state is RecordState.ACQUIRED:
                    self._release(batch, run)

    def _release(self, batch: InFlightBatch, run: RecordRun) -> None:
        first_offset, last_offset, state = run
        records = self._records
        state.let_go(_released(records, last_offset), self._settings)
        state.cancel_lock()
        self.changes.append(
            StateChange(batch, first_offset, last_offset, state.state, state.delivery_count)
        )
        if state.state is RecordState.ARCHIVING:
            cause = DeadLetterCause.DELIVERY_COUNT_EXCEEDED
            self.dead_letters.append(
                DeadLetter(first_offset, last_offset, state.delivery_count, cause, batch)
            )
        elif state.state is RecordState.AVAILABLE:
            records.may_have_available = True
        if state.state in TERMINAL_STATES:
            count = records.count_from_start(first_offset, last_offset)
            records.delivery_complete_count += count


def _released(records: InFlightRecords, last_offset: int) -> RecordState:
    """Return what released records become, by the last one of them."""
    is_gone = last_offset < records.start_offset
    return RecordState.ARCHIVED if is_gone else RecordState.AVAILABLE

"""The transitions that one request decides, all of which are written, or taken back."""

from kvorum.broker.share_partition.in_flight_batch import InFlightBatch, RecordRun
from kvorum.broker.share_partition.in_flight_records import InFlightRecords
from kvorum.broker.share_partition.record_state import TERMINAL_STATES, RecordState
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_partition.state_write import DeadLetter, DeadLetterCause, StateChange


class Transitions:
    """Gathers the transitions of acquired records in the order in which they are decided."""

    def __init__(self, records: InFlightRecords, settings: SharePartitionSettings) -> None:
        self._records = records
        self._settings = settings
        self.changes: list[StateChange] = []

    def begin(self, batch: InFlightBatch, run: RecordRun, to: RecordState) -> None:
        """Begin the transition of records of a batch."""
        first_offset, last_offset, state = run
        state.begin_transition(to, self._settings)
        cause: DeadLetterCause | None = None
        if state.state is RecordState.ARCHIVING:
            is_rejected = to is RecordState.ARCHIVING
            cause = (
                DeadLetterCause.CLIENT_REJECT
                if is_rejected
                else DeadLetterCause.DELIVERY_COUNT_EXCEEDED
            )
        self.changes.append(
            StateChange(batch, first_offset, last_offset, state.state, state.delivery_count, cause)
        )
        if state.state in TERMINAL_STATES:
            count = self._records.count_from_start(first_offset, last_offset)
            self._records.delivery_complete_count += count


def take_back(records: InFlightRecords, changes: tuple[StateChange, ...]) -> None:
    """Have records be as before their transitions, except where locks have expired meanwhile."""
    for change in changes:
        for run in change.batch.runs_between(change.first_offset, change.last_offset):
            state = run.state
            state.complete_transition(is_written=False)
            if state.state is RecordState.AVAILABLE:
                records.may_have_available = True
            if change.delivery_state in TERMINAL_STATES and state.state not in TERMINAL_STATES:
                count = records.count_from_start(run.first_offset, run.last_offset)
                records.delivery_complete_count -= count


def complete(records: InFlightRecords, changes: tuple[StateChange, ...]) -> list[DeadLetter]:
    """Keep transitions that are written; return the records that become dead letters."""
    dead_letters: list[DeadLetter] = []
    for change in changes:
        for run in change.batch.runs_between(change.first_offset, change.last_offset):
            run.state.complete_transition(is_written=True)
            if run.state.state is RecordState.AVAILABLE:
                records.may_have_available = True
        cause = change.dead_letter_cause
        if cause is not None:
            dead_letters.append(
                DeadLetter(
                    change.first_offset,
                    change.last_offset,
                    change.delivery_count,
                    cause,
                    change.batch,
                )
            )
    return dead_letters

"""The records in flight as the share-group state has them."""

from typing import Final

from kvorum.broker.share_partition.gap_window import GapWindow
from kvorum.broker.share_partition.in_flight_batch import InFlightBatch, parts_of
from kvorum.broker.share_partition.in_flight_records import InFlightRecords
from kvorum.broker.share_partition.in_flight_state import InFlightState
from kvorum.broker.share_partition.record_state import TERMINAL_STATES, RecordState
from kvorum.broker.share_partition.state_write import DeadLetter, DeadLetterCause
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponseStateBatch,
)

UNINITIALIZED_START_OFFSET: Final = -1
"""The start offset of a stored state that no share partition has been begun with."""


def load(
    records: InFlightRecords,
    result: ReadShareGroupStateResponse.PartitionResult,
    reset_offset: int,
    *,
    delivery_count_limit: int,
) -> tuple[DeadLetter, ...]:
    """Put the batches of a stored state into flight; return those that are still dead letters.

    Raises ValueError for a batch that begins before the start offset, ends before it begins, or
    has an unknown state.
    """
    has_start = result.start_offset != UNINITIALIZED_START_OFFSET
    records.start_offset = result.start_offset if has_start else reset_offset
    records.end_offset = records.start_offset
    dead_letters: list[DeadLetter] = []
    gap_start: int | None = None
    expected = records.start_offset
    for stored in result.state_batches:
        first_offset = stored.first_offset
        last_offset = stored.last_offset
        if not records.start_offset <= first_offset <= last_offset:
            raise ValueError(
                f"batch {first_offset} to {last_offset} with start offset {records.start_offset}"
            )
        if gap_start is None and first_offset > expected:
            gap_start = expected
        expected = last_offset + 1
        letter = _put(records, stored, delivery_count_limit)
        if letter is not None:
            dead_letters.append(letter)
    if records.batches:
        records.may_have_available = True
        records.end_offset = records.batches.last.last_offset
        if gap_start is not None:
            records.gap_window = GapWindow(records.end_offset, gap_start)
        records.forget_completed()
    return tuple(dead_letters)


def _put(
    records: InFlightRecords,
    stored: ReadShareGroupStateResponseStateBatch,
    delivery_count_limit: int,
) -> DeadLetter | None:
    """Put one batch into flight, and return it if it is still a dead letter."""
    first_offset = stored.first_offset
    last_offset = stored.last_offset
    delivery_count = stored.delivery_count
    state = RecordState(stored.delivery_state)
    if state is RecordState.AVAILABLE:
        for first, last in parts_of(first_offset, last_offset):
            records.batches.put(InFlightBatch(first, last, InFlightState(state, delivery_count)))
        return None
    batch = InFlightBatch(first_offset, last_offset, InFlightState(state, delivery_count))
    records.batches.put(batch)
    if state in TERMINAL_STATES:
        records.delivery_complete_count += batch.record_count
    if state is not RecordState.ARCHIVING:
        return None
    is_exhausted = delivery_count >= delivery_count_limit
    cause = (
        DeadLetterCause.DELIVERY_COUNT_EXCEEDED if is_exhausted else DeadLetterCause.CLIENT_REJECT
    )
    return DeadLetter(first_offset, last_offset, delivery_count, cause, batch)

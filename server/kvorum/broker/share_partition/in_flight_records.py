"""The records in flight of a share partition, from its start to its end offset."""

from collections.abc import Iterable
from typing import NamedTuple

from kvorum.broker.share_partition.acquisition_lock import AcquisitionLocks
from kvorum.broker.share_partition.gap_window import GapWindow
from kvorum.broker.share_partition.in_flight_batch import InFlightBatch
from kvorum.broker.share_partition.in_flight_batches import InFlightBatches
from kvorum.broker.share_partition.record_state import TERMINAL_STATES, RecordState


class _CompletedFront(NamedTuple):
    """The last offset of the complete records in front, its batch, and the number of records.

    `record_count` leaves out those before the start offset.
    """

    batch: InFlightBatch
    last_offset: int
    record_count: int


class InFlightRecords:
    """The batches, the two offsets, and what is counted and remembered about them.

    No record before `start_offset` is delivered; after `end_offset` none has been. They are equal
    while nothing is in flight.
    """

    def __init__(self) -> None:
        self.batches = InFlightBatches()
        self.locks = AcquisitionLocks()
        self.start_offset = 0
        self.end_offset = 0
        self.gap_window: GapWindow | None = None
        self.may_have_available = False
        """Whether a record before the end offset may be available, so that it is looked for."""
        self.delivery_complete_count = 0
        """The records from the start offset on that are acknowledged or archived."""

    @property
    def record_count(self) -> int:
        """The number of records in flight."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def active_gap_window(self) -> GapWindow | None:
        """The gaps of the stored state; None once records after it are in flight."""
        window = self.gap_window
        return window if window is not None and window.end_offset == self.end_offset else None

    def next_fetch_offset(self) -> int:
        """Return the first offset that may be acquired, from which on the log is read.

        It is not before the start offset: unlike Kafka's, a group whose log has lost records
        between those of its stored state does not ask for them forever.
        """
        if not self.batches or self.start_offset > self.batches.last.last_offset:
            self.may_have_available = False
            return self.end_offset
        if self.may_have_available:
            available = self._first_available_offset()
            if available is not None:
                return available
            self.may_have_available = False
        return self.end_offset + 1

    def _first_available_offset(self) -> int | None:
        start_offset = self.start_offset
        window = self.active_gap_window
        gap_start = None if window is None else max(window.gap_start_offset, start_offset)
        for batch in self.batches:
            if gap_start is not None:
                if batch.first_offset > gap_start:
                    return gap_start
                gap_start = max(batch.last_offset + 1, gap_start)
            if batch.offset_states is None:
                if batch.state.is_acquirable and batch.last_offset >= start_offset:
                    return max(batch.first_offset, start_offset)
                continue
            for offset, state in batch.states_between(start_offset, batch.last_offset):
                if state.is_acquirable:
                    return offset
        return None

    def note_acquired_before(self, offset: int) -> None:
        """Begin the gaps of the stored state at an offset, or end them."""
        window = self.gap_window
        if window is None:
            return
        if window.end_offset == self.end_offset and offset <= window.end_offset:
            window.gap_start_offset = offset
        else:
            self.gap_window = None

    def count_from_start(self, first_offset: int, last_offset: int) -> int:
        """Return how many of the offsets between two ones, both included, count as in flight."""
        return max(0, last_offset - max(self.start_offset, first_offset) + 1)

    def has_start_within(self, first_offset: int, last_offset: int) -> bool:
        """Return whether the start offset comes after an offset, and not after another one."""
        return first_offset < self.start_offset <= last_offset

    def archive(
        self,
        batches: Iterable[InFlightBatch],
        state: RecordState,
        *,
        first_offset: int,
        end_offset: int,
    ) -> int:
        """Archive the records that are in a state, before `end_offset`; return how many."""
        archived = 0
        last_offset = end_offset - 1
        for batch in batches:
            if batch.first_offset >= end_offset:
                break
            if batch.offset_states is None:
                if batch.state.state is not state:
                    continue
                if batch.is_within(first_offset, last_offset):
                    batch.state.archive()
                    archived += batch.record_count
                    continue
                batch.split(self.locks)
            for _, one in batch.states_between(first_offset, last_offset):
                if one.state is state:
                    one.archive()
                    archived += 1
        return archived

    def archive_lost(self, fetch_offset: int, base_offset: int) -> None:
        """Archive the available records that a fetch has not found: it begins after them.

        The log has lost them, by compaction for example.
        """
        if not self.batches or fetch_offset >= base_offset:
            return
        floor = self.batches.floor(fetch_offset)
        is_inside = floor is not None and floor.last_offset >= fetch_offset
        begin = floor.first_offset if floor is not None and is_inside else fetch_offset
        archived = self.archive(
            self.batches.begun_between(begin, base_offset - 1),
            RecordState.AVAILABLE,
            first_offset=fetch_offset,
            end_offset=base_offset,
        )
        self.delivery_complete_count += archived
        if archived:
            self.may_have_available = True

    def move_log_start(self, log_start_offset: int) -> None:
        """Take note that the log begins at a later offset; an earlier one changes nothing.

        Records that members have acquired stay theirs, though they count as complete.
        """
        if log_start_offset <= self.start_offset:
            return
        if not self.batches:
            self.start_offset = log_start_offset
            self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        completed = self._count_complete_before(log_start_offset)
        archived = self.archive(
            self.batches,
            RecordState.AVAILABLE,
            first_offset=self.start_offset,
            end_offset=log_start_offset,
        )
        if archived:
            self.may_have_available = True
        self.start_offset = log_start_offset
        self.delivery_complete_count -= completed
        self.end_offset = max(self.end_offset, log_start_offset)

    def _count_complete_before(self, offset: int) -> int:
        """Return how many records from the start offset to another one are complete."""
        count = 0
        for batch in self.batches.begun_between(0, offset - 1):
            if batch.offset_states is None:
                if batch.state.state in TERMINAL_STATES:
                    last_offset = min(offset - 1, batch.last_offset)
                    count += self.count_from_start(batch.first_offset, last_offset)
                continue
            states = batch.states_between(self.start_offset, offset - 1)
            count += sum(one.state in TERMINAL_STATES for _, one in states)
        return count

    def forget_completed(self) -> None:
        """Forget the records in front that are complete, and begin after them."""
        if not self._may_move_start():
            return
        front = self._completed_front()
        if front is None:
            return
        last_offset = self.batches.last.last_offset
        if front.last_offset == last_offset:
            self.start_offset = last_offset + 1
            self.end_offset = last_offset + 1
            self.batches.clear()
            self.delivery_complete_count = 0
            return
        self._move_start_after(front)
        self.delivery_complete_count -= front.record_count

    def _may_move_start(self) -> bool:
        """Return whether the record at the start offset is complete."""
        batch = self.batches.floor(self.start_offset)
        if batch is None:
            return False
        if batch.offset_states is None:
            state = batch.state
        elif self.start_offset <= batch.last_offset:
            state = batch.offset_states[self.start_offset - batch.first_offset]
        else:
            return False
        return state.is_complete

    def _completed_front(self) -> _CompletedFront | None:
        """Return the records in front that need not be kept; None without one.

        Those include available ones below the start offset, which would stay for ever.
        """
        window = self.active_gap_window
        front: _CompletedFront | None = None
        count = 0
        for batch in self.batches:
            if window is not None and batch.last_offset >= window.gap_start_offset:
                break
            end_offset = self._end_of_front(batch)
            if end_offset > batch.first_offset:
                count += self.count_from_start(batch.first_offset, end_offset - 1)
                front = _CompletedFront(batch, end_offset - 1, count)
            if end_offset <= batch.last_offset:
                break
        return front

    def _end_of_front(self, batch: InFlightBatch) -> int:
        """Return the first offset of a batch whose record is kept; the one after it if none is."""
        offset = batch.first_offset + batch.completed_in_front
        if offset >= self.start_offset:
            return offset
        for first_offset, last_offset, state in batch.runs_between(offset, batch.last_offset):
            is_lost = last_offset < self.start_offset and state.is_acquirable
            if not is_lost and not state.is_complete:
                return first_offset
        return batch.last_offset + 1

    def _move_start_after(self, front: _CompletedFront) -> None:
        """Begin after what is complete, and forget it; a batch that goes on after it stays."""
        offset = front.last_offset
        if front.batch.last_offset != offset:
            self.start_offset = max(self.start_offset, offset + 1)
            self.batches.remove_begun_before(front.batch.first_offset)
            return
        self.start_offset = max(self.start_offset, self.batches.first_offset_after(offset))
        window = self.active_gap_window
        if window is not None:
            self.start_offset = min(window.gap_start_offset, self.start_offset)
        self.batches.remove_begun_before(offset + 1)

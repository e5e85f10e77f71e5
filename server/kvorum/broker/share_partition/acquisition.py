"""The acquisition of fetched records by a member (Kafka's SharePartition.acquire)."""

from bisect import bisect_right
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from kvorum.broker.share_partition.aborted_batches import aborted_batches, without_batches
from kvorum.broker.share_partition.in_flight_batch import InFlightBatch, parts_of
from kvorum.broker.share_partition.in_flight_records import InFlightRecords
from kvorum.broker.share_partition.in_flight_state import InFlightState
from kvorum.broker.share_partition.record_state import RecordState
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.messages.share_fetch import ShareFetchResponse
from kvorum.wire.records.batch import RecordBatch
from kvorum.wire.records.legacy import Entry, first_offset_of

THROTTLED_DELIVERIES_MIN: Final = 2
"""The deliveries from which on records may be suspected of bringing down their readers."""


class ShareAcquireMode(Enum):
    """The strictness of the most records of a ShareFetch (KIP-1206)."""

    BATCH_OPTIMIZED = 0
    """The last batch is acquired whole, even if that makes more records."""
    RECORD_LIMIT = 1
    """Never more records, all of them in one batch of the answer if they are new."""


class ShareAcquirer(NamedTuple):
    """A member with what its ShareFetch says about all partitions.

    New records are given out in batches of about `batch_size`.
    """

    member_id: str
    mode: ShareAcquireMode
    batch_size: int


class FetchedRecords(NamedTuple):
    """Batches that were read of a log from `fetch_offset` on; the first one holds that offset.

    `aborted` are the aborted transactions among them, for a reader of committed records only.
    """

    fetch_offset: int
    batches: Sequence[Entry]
    aborted: Sequence[AbortedTransaction] = ()


class ShareAcquiredRecords(NamedTuple):
    """The batches of acquired records that a member is sent, and the number of records in them.

    `new_batch_sizes` has the number of records of each batch that was not in flight before.
    """

    batches: list[ShareFetchResponse.AcquiredRecords]
    record_count: int
    new_batch_sizes: Sequence[int] = ()


class Acquisition:
    """One acquisition, from fetched records that end after the start offset."""

    def __init__(
        self,
        records: InFlightRecords,
        settings: SharePartitionSettings,
        acquirer: ShareAcquirer,
        fetched: FetchedRecords,
        now_ms: float,
    ) -> None:
        self._records = records
        self._settings = settings
        self._acquirer = acquirer
        self._is_record_limit = acquirer.mode is ShareAcquireMode.RECORD_LIMIT
        self._fetched = fetched
        self._base_offsets = [first_offset_of(one) for one in fetched.batches]
        self._first_base_offset = self._base_offsets[0]
        self._first_offset = max(self._first_base_offset, records.start_offset)
        """The first offset of records in flight that are given out."""
        self._deadline_ms = now_ms + settings.record_lock_duration_ms
        limit = settings.delivery_count_limit
        self._throttled_deliveries = max(THROTTLED_DELIVERIES_MIN, (limit + 1) // 2)
        self._acquired: list[ShareFetchResponse.AcquiredRecords] = []
        self._count = 0
        self._new_batch_sizes: list[int] = []

    def run(self, max_records: int) -> ShareAcquiredRecords:
        """Acquire at most `max_records`, or those up to the end of their batch."""
        records = self._records
        last_offset, max_records = self._limits(max_records)
        if max_records <= 0:
            return ShareAcquiredRecords([], 0)
        aborted = aborted_batches(self._fetched.batches, self._fetched.aborted)
        first_offset = self._first_base_offset
        records.archive_lost(self._fetched.fetch_offset, first_offset)
        floor = records.batches.floor(first_offset)
        if floor is None:
            first_offset = max(first_offset, records.start_offset)
        elif floor.last_offset >= first_offset:
            first_offset = floor.first_offset
        in_flight = records.batches.begun_between(
            min(self._first_base_offset, first_offset), last_offset
        )
        if in_flight:
            self._acquire_in_flight(in_flight, first_offset, last_offset, max_records)
        elif first_offset <= last_offset:
            self._acquire_new(first_offset, last_offset, max_records)
        return self._without(aborted)

    def _limits(self, max_records: int) -> tuple[int, int]:
        """Return the last offset and the most records that may be acquired.

        With as many records in flight as may be, these alone may be acquired.
        """
        records = self._records
        last_offset = self._fetched.batches[-1].last_offset
        room = self._settings.record_locks_max - records.record_count
        if room > 0:
            return last_offset, min(max_records, room)
        in_flight_count = records.end_offset - self._fetched.fetch_offset + 1
        if in_flight_count <= 0:
            return last_offset, 0
        return min(last_offset, records.end_offset), min(max_records, in_flight_count)

    def _acquire_in_flight(
        self,
        in_flight: Sequence[InFlightBatch],
        first_offset: int,
        last_offset: int,
        max_records: int,
    ) -> None:
        """Acquire what is available, what lies in gaps between, and what comes after."""
        gap_start = first_offset
        for batch in in_flight:
            if self._count >= max_records:
                break
            if self._records.active_gap_window is not None:
                if gap_start < batch.first_offset:
                    self._acquire_new(gap_start, batch.first_offset - 1, max_records - self._count)
                gap_start = batch.last_offset + 1
                if self._count >= max_records:
                    break
            is_throttled = self._is_throttled(batch, last_offset)
            if is_throttled and self._count:
                break
            before = self._count
            self._acquire_batch(
                batch, last_offset, max_records - self._count, is_throttled=is_throttled
            )
            if is_throttled and self._count > before:
                break
        else:
            end = in_flight[-1].last_offset
            if self._count < max_records and end < last_offset:
                self._acquire_new(end + 1, last_offset, max_records - self._count)
        if self._acquired:
            self._records.note_acquired_before(self._acquired[-1].last_offset + 1)

    def _acquire_batch(
        self, batch: InFlightBatch, last_offset: int, max_records: int, *, is_throttled: bool
    ) -> None:
        """Acquire what is available of a batch, whole if there is no reason to split it."""
        if batch.offset_states is None and not batch.state.is_acquirable:
            return
        is_too_large = self._is_record_limit and batch.record_count > max_records
        is_whole = batch.is_within(self._first_offset, last_offset)
        if is_whole and batch.offset_states is None and not is_too_large and not is_throttled:
            state = batch.state
            self._acquire_state(state, batch.first_offset, batch.last_offset)
            self._give(batch.first_offset, batch.last_offset, state.delivery_count)
            return
        batch.split(self._records.locks)
        self._acquire_offsets(batch, last_offset, max_records)

    def _acquire_offsets(self, batch: InFlightBatch, last_offset: int, max_records: int) -> None:
        """Acquire the available records of a batch that has a state for each.

        The last delivery of a record is one of it alone; the closer records come to it, the fewer
        of their batch are delivered together.
        """
        limit = self._settings.delivery_count_limit
        has_lonely_last = limit > THROTTLED_DELIVERIES_MIN
        offset_count = batch.record_count
        throttled_max: int | None = None
        count = 0
        for offset, state in batch.states_between(self._first_offset, last_offset):
            if not state.is_acquirable:
                continue
            deliveries = state.delivery_count
            if has_lonely_last and deliveries == limit - 1 and count:
                break
            if deliveries >= self._throttled_deliveries and throttled_max is None:
                shift = deliveries - self._throttled_deliveries + 1
                throttled_max = max(1, offset_count >> shift)
            self._acquire_state(state, offset, offset)
            self._give_offset(offset, state.delivery_count, is_first=not count)
            count += 1
            is_last_delivery = has_lonely_last and state.delivery_count == limit
            is_full = self._is_record_limit and count == max_records
            if is_last_delivery or is_full or count == throttled_max:
                break

    def _acquire_state(self, state: InFlightState, first_offset: int, last_offset: int) -> None:
        lock = self._records.locks.begin(first_offset, last_offset, deadline_ms=self._deadline_ms)
        state.acquire(self._acquirer.member_id, lock)

    def _give(self, first_offset: int, last_offset: int, delivery_count: int) -> None:
        self._acquired.append(
            ShareFetchResponse.AcquiredRecords(first_offset, last_offset, delivery_count)
        )
        self._count += last_offset - first_offset + 1

    def _give_offset(self, offset: int, delivery_count: int, *, is_first: bool) -> None:
        """Give one record, together with the one before it in the batch where that is alike."""
        previous = None if is_first else self._acquired[-1]
        if (
            previous is not None
            and previous.last_offset == offset - 1
            and previous.delivery_count == delivery_count
        ):
            previous.last_offset = offset
            self._count += 1
        else:
            self._give(offset, offset, delivery_count)

    def _is_throttled(self, batch: InFlightBatch, last_offset: int) -> bool:
        """Return whether an available record was delivered so often that it may do harm."""
        if batch.offset_states is None:
            state = batch.state
            return state.is_acquirable and state.delivery_count >= self._throttled_deliveries
        return any(
            state.is_acquirable and state.delivery_count >= self._throttled_deliveries
            for _, state in batch.states_between(self._first_offset, last_offset)
        )

    def _acquire_new(self, first_offset: int, last_offset: int, max_records: int) -> None:
        """Acquire records that have no state yet, up to the end of a batch of the log."""
        records = self._records
        if not records.batches:
            first_offset = max(first_offset, records.end_offset)
        last = last_offset
        if max_records < last_offset - first_offset + 1:
            last = self._end_of_log_batch(first_offset + max_records - 1)
            if records.active_gap_window is not None:
                last = min(last, last_offset)
        given = self._add(first_offset, last, max_records)
        if records.batches.first.first_offset == first_offset:
            records.start_offset = first_offset
        records.end_offset = max(records.end_offset, last)
        records.note_acquired_before(given + 1)

    def _end_of_log_batch(self, offset: int) -> int:
        """Return the last offset of the fetched batch with an offset; itself if it is in none."""
        index = bisect_right(self._base_offsets, offset) - 1
        return offset if index < 0 else max(offset, self._fetched.batches[index].last_offset)

    def _add(self, first_offset: int, last_offset: int, max_records: int) -> int:
        """Put new records into flight, acquired; return the last offset that the member gets."""
        if not self._is_record_limit:
            for first, last in self._parts(first_offset, last_offset):
                self._add_acquired(first, last)
                self._give(first, last, 1)
            return last_offset
        last_given = min(first_offset + max_records - 1, last_offset)
        for first, last in parts_of(first_offset, last_offset):
            if last <= last_given:
                self._add_acquired(first, last)
            else:
                self._add_available(first, last, last_given)
        self._give(first_offset, last_given, 1)
        return last_given

    def _parts(self, first_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Cut new records where batches of the log begin, each part as long as may be wished."""
        parts: list[tuple[int, int]] = []
        first = first_offset
        if last_offset - first_offset + 1 > self._acquirer.batch_size:
            for base_offset in self._base_offsets:
                if base_offset > last_offset:
                    break
                if base_offset - first >= self._acquirer.batch_size:
                    parts.append((first, base_offset - 1))
                    first = base_offset
        parts.append((first, last_offset))
        return parts

    def _add_acquired(self, first_offset: int, last_offset: int) -> None:
        for first, last in parts_of(first_offset, last_offset):
            lock = self._records.locks.begin(first, last, deadline_ms=self._deadline_ms)
            state = InFlightState(RecordState.ACQUIRED, 1, self._acquirer.member_id, lock)
            self._put(InFlightBatch(first, last, state))

    def _add_available(self, first_offset: int, last_offset: int, last_given: int) -> None:
        """Put new records into flight, of which those up to `last_given` are acquired."""
        self._records.may_have_available = True
        if last_given < first_offset:
            state = InFlightState(RecordState.AVAILABLE, 0)
            self._put(InFlightBatch(first_offset, last_offset, state))
            return
        begin_lock = self._records.locks.begin
        locks = [
            begin_lock(offset, offset, deadline_ms=self._deadline_ms)
            for offset in range(first_offset, last_given + 1)
        ]
        self._put(
            InFlightBatch.acquired_in_part(
                first_offset, last_offset, locks, self._acquirer.member_id
            )
        )

    def _put(self, batch: InFlightBatch) -> None:
        """Put a batch of new records into flight."""
        self._records.batches.put(batch)
        self._new_batch_sizes.append(batch.record_count)

    def _without(self, aborted: Sequence[RecordBatch]) -> ShareAcquiredRecords:
        """Archive the acquired records of aborted transactions; return the others."""
        if not aborted or not self._acquired:
            return ShareAcquiredRecords(self._acquired, self._count, self._new_batch_sizes)
        records = self._records
        for batch in aborted:
            floor = records.batches.floor(batch.base_offset)
            begin = batch.base_offset if floor is None else floor.first_offset
            records.delivery_complete_count += records.archive(
                records.batches.begun_between(begin, batch.last_offset),
                RecordState.ACQUIRED,
                first_offset=batch.base_offset,
                end_offset=batch.last_offset + 1,
            )
        kept = without_batches(self._acquired, aborted)
        count = sum(one.last_offset - one.first_offset + 1 for one in kept)
        return ShareAcquiredRecords(kept, count, self._new_batch_sizes)

"""Records in flight that were acquired together (Kafka's InFlightBatch)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kvorum.broker.share_partition.acquisition_lock import AcquisitionLock, AcquisitionLocks
from kvorum.broker.share_partition.in_flight_state import InFlightState
from kvorum.broker.share_partition.record_state import RecordState

BATCH_RECORDS_MAX: Final = 10_000
"""The most records that may get a state each at once: a small batch of a log may have millions."""


class RecordRun(NamedTuple):
    """Records of a batch that have one state."""

    first_offset: int
    last_offset: int
    state: InFlightState


class InFlightBatch:
    """The records from `first_offset` to `last_offset`.

    They have one `state` until something comes upon some of them only: then each has its own one,
    in `offset_states`, and the batch has none.
    """

    __slots__ = ("_completed", "_state", "first_offset", "last_offset", "offset_states")

    def __init__(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self._state = state
        # Records that are complete remain so: of a split batch only those after them are looked at.
        self._completed = 0
        self.offset_states: list[InFlightState] | None = None
        """The states of the offsets from the first one on; None as long as they have one state."""

    @classmethod
    def acquired_in_part(
        cls, first_offset: int, last_offset: int, locks: list[AcquisitionLock], member_id: str
    ) -> InFlightBatch:
        """Return new records, of which a member has the first ones, a lock for each."""
        acquired = [InFlightState(RecordState.ACQUIRED, 1, member_id, lock) for lock in locks]
        available_count = last_offset - first_offset + 1 - len(acquired)
        available = [InFlightState(RecordState.AVAILABLE, 0) for _ in range(available_count)]
        batch = cls(first_offset, last_offset, InFlightState(RecordState.AVAILABLE, 0))
        batch.offset_states = acquired + available
        return batch

    @property
    def record_count(self) -> int:
        """The number of offsets from the first to the last one."""
        return self.last_offset - self.first_offset + 1

    @property
    def state(self) -> InFlightState:
        """The state that all records have; ValueError if each has its own one."""
        if self.offset_states is not None:
            raise ValueError("the records of the batch have states of their own")
        return self._state

    @property
    def completed_in_front(self) -> int:
        """The number of records in front that are complete; all or none if it is not split."""
        states = self.offset_states
        if states is None:
            return self.record_count if self._state.is_complete else 0
        while self._completed < len(states) and states[self._completed].is_complete:
            self._completed += 1
        return self._completed

    @property
    def runs(self) -> Iterator[RecordRun]:
        """All records: one by one if the batch is split."""
        return self.runs_between(self.first_offset, self.last_offset)

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Return whether all records are between two offsets, both included."""
        return first_offset <= self.first_offset and self.last_offset <= last_offset

    def states_between(
        self, first_offset: int, last_offset: int
    ) -> Iterator[tuple[int, InFlightState]]:
        """Yield the offsets between two ones, both included, each with the state of its own."""
        states = self.offset_states
        if states is None:
            raise ValueError("the records of the batch have one state")
        first = max(first_offset, self.first_offset)
        for offset in range(first, min(last_offset, self.last_offset) + 1):
            yield offset, states[offset - self.first_offset]

    def runs_between(self, first_offset: int, last_offset: int) -> Iterator[RecordRun]:
        """Yield the records between two offsets of the batch: one by one if it is split."""
        if self.offset_states is None:
            yield RecordRun(first_offset, last_offset, self._state)
            return
        for offset, state in self.states_between(first_offset, last_offset):
            yield RecordRun(offset, offset, state)

    def split(self, locks: AcquisitionLocks) -> None:
        """Give each record a state of its own, with lock and transition, unless it has one."""
        if self.offset_states is not None:
            return
        whole = self._state
        self.offset_states = [
            whole.copy(_lock_of(offset, whole.lock, locks))
            for offset in range(self.first_offset, self.last_offset + 1)
        ]
        whole.cancel_lock()


def parts_of(first_offset: int, last_offset: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last offsets of the batches that new records are put into."""
    for first in range(first_offset, last_offset + 1, BATCH_RECORDS_MAX):
        yield first, min(first + BATCH_RECORDS_MAX - 1, last_offset)


def _lock_of(
    offset: int, whole: AcquisitionLock | None, locks: AcquisitionLocks
) -> AcquisitionLock | None:
    if whole is None:
        return None
    return locks.begin(offset, offset, deadline_ms=whole.deadline_ms)

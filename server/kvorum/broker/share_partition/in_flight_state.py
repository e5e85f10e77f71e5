"""The state of one record, or of a batch of records that have it alike (Kafka's InFlightState)."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvorum.broker.share_partition.acquisition_lock import AcquisitionLock
from kvorum.broker.share_partition.record_state import TERMINAL_STATES, VALID_MOVES, RecordState
from kvorum.broker.share_partition.settings import SharePartitionSettings

NO_MEMBER: Final = ""


class _Rollback(NamedTuple):
    """The state before a transition, and the limit of deliveries at that time."""

    state: RecordState
    member_id: str
    delivery_count_limit: int


class InFlightState:
    """A state with its member, its deliveries so far, and its acquisition lock.

    A transition begins when it is decided, and is completed when it is written or could not be:
    until then no member acquires the record, and its lock may expire.
    """

    __slots__ = ("_is_archived", "_rollback", "delivery_count", "lock", "member_id", "state")

    def __init__(
        self,
        state: RecordState,
        delivery_count: int,
        member_id: str = NO_MEMBER,
        lock: AcquisitionLock | None = None,
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        self._rollback: _Rollback | None = None
        self._is_archived = False

    @property
    def is_in_transition(self) -> bool:
        """Whether a move is decided that is not written yet."""
        return self._rollback is not None

    @property
    def is_acquirable(self) -> bool:
        """Whether a member may acquire the record."""
        return self.state is RecordState.AVAILABLE and self._rollback is None

    @property
    def is_complete(self) -> bool:
        """Whether the record is acknowledged or archived, and that is written."""
        return self.state in TERMINAL_STATES and not self.is_in_transition

    def copy(self, lock: AcquisitionLock | None) -> InFlightState:
        """Return the state of a record that had this one so far, with a lock of its own."""
        copied = InFlightState(self.state, self.delivery_count, self.member_id, lock)
        copied._rollback = self._rollback
        return copied

    def acquire(self, member_id: str, lock: AcquisitionLock) -> None:
        """Give an acquirable record to a member."""
        self._move(RecordState.ACQUIRED)
        self.delivery_count += 1
        self.member_id = member_id
        self.lock = lock

    def renew(self, lock: AcquisitionLock) -> None:
        """Give the member another lock."""
        self.cancel_lock()
        self.lock = lock

    def let_go(self, state: RecordState, settings: SharePartitionSettings) -> None:
        """Take the record from its member, without the wait for a write.

        One that would be available, and has been delivered as often as may be, is archived.
        """
        self._move(self._state_within_limit(state, settings))
        self.member_id = NO_MEMBER

    def begin_transition(self, state: RecordState, settings: SharePartitionSettings) -> None:
        """Take the record from its member as `let_go` does, until `complete_transition`."""
        rollback = _Rollback(self.state, self.member_id, settings.delivery_count_limit)
        self.let_go(state, settings)
        self._rollback = rollback

    def complete_transition(self, *, is_written: bool) -> None:
        """Keep what was decided; or take it back, but give nothing to a member out of time."""
        rollback = self._rollback
        self._rollback = None
        if is_written or self._is_archived or rollback is None:
            self.cancel_lock()
        elif self.lock is not None and self.lock.has_expired:
            is_exhausted = self.delivery_count >= rollback.delivery_count_limit
            self.state = RecordState.ARCHIVED if is_exhausted else RecordState.AVAILABLE
            self.member_id = NO_MEMBER
            self.cancel_lock()
        else:
            self.state = rollback.state
            self.member_id = rollback.member_id

    def archive(self) -> None:
        """Give the record to no member any more, also if its transition fails."""
        self._is_archived = True
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.cancel_lock()

    def cancel_lock(self) -> None:
        """Drop the lock, if there is one."""
        if self.lock is not None:
            self.lock.is_cancelled = True
            self.lock = None

    def _move(self, state: RecordState) -> None:
        if state not in VALID_MOVES[self.state]:
            raise ValueError(f"a record that is {self.state.name} does not become {state.name}")
        self.state = state

    def _state_within_limit(
        self, state: RecordState, settings: SharePartitionSettings
    ) -> RecordState:
        if (
            state is not RecordState.AVAILABLE
            or self.delivery_count < settings.delivery_count_limit
        ):
            return state
        if settings.is_dead_letter_queue_enabled:
            return RecordState.ARCHIVING
        return RecordState.ARCHIVED

"""The promises to the members of a share group (KIP-932), and the records that they got.

What is acquired is in the memory of a leader alone, as in Kafka: another one gives it out again at
once, and counts no delivery that was not written. A former leader that does not know of the next
one gives out what it had, too, also when it leads again by then. So a record has one member for one
term of a leader, and what was written before is known to leaders of the same epoch or a later one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Final

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_partition.record_state import RecordState
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.ledger import PartitionLedger
from kvorum.simulation.partitions.share_group_settings import ClusterShareGroupSettings
from kvorum.simulation.properties.catalogue import Checks, Property, PropertyViolatedError
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest

_COMPLETES: Final = frozenset({AcknowledgeType.GAP, AcknowledgeType.ACCEPT, AcknowledgeType.REJECT})
_NEVER_DEAD: Final = frozenset({AcknowledgeType.GAP, AcknowledgeType.ACCEPT})
_DEAD: Final = frozenset({RecordState.ARCHIVING, RecordState.ARCHIVED})
_ROUNDING_MS: Final = 2
"""Clocks of the day have whole milliseconds."""


@dataclass(frozen=True, slots=True)
class Term:
    """The time for which one leader has one share partition in its memory."""

    broker_id: int
    incarnation: int
    number: int
    """The number of share partitions of this place that its process had before."""
    leader_epoch: int
    """The epoch in which that time began; the leader may lead on in higher ones."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a member that a leader got; `moment` orders it among all that was noted."""

    member_id: str
    moment: int
    at_ms: float
    """When it arrived, by the leader's clock."""


@dataclass(slots=True)
class _Claim:
    """A record that a leader has given to a member, until it ends or is let go."""

    member_id: str
    moment: int
    asked_ms: float
    answered_ms: float
    delivery_count: int
    is_let_go: bool = False


@dataclass(frozen=True, slots=True)
class _Written:
    """An acknowledgement that a leader has answered to be written."""

    moment: int
    leader_epoch: int
    delivery_count: int


@dataclass(slots=True)
class _Record:
    """The book of one record."""

    claims: dict[Term, list[_Claim]] = field(default_factory=dict[Term, list[_Claim]])
    deliveries: int = 0
    """The greatest delivery count in an answer to a member."""
    completed_by: set[str] = field(default_factory=set[str])
    """The members that have said that it need not be delivered again, heard or not."""
    words: set[AcknowledgeType] = field(default_factory=set[AcknowledgeType])
    """All that members have said of it, heard or not."""
    is_exhausted: bool = False
    """Whether a leader has said that it was delivered as often as may be."""
    accepted: _Written | None = None
    released: _Written | None = None


class ShareGroupLedger:
    """The records of one group by partition; methods raise PropertyViolatedError."""

    def __init__(
        self, settings: ClusterShareGroupSettings, ledger: PartitionLedger, checks: Checks
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._checks = checks
        self._moment = 0
        self._let_go: dict[str, int] = {}
        """When a member last let go of all that it had of some leader."""
        self._records: defaultdict[int, defaultdict[int, _Record]] = defaultdict(
            lambda: defaultdict(_Record)
        )
        self._checked_to: dict[int, int] = {}
        self._assigned_ms: dict[int, float] = {}
        self._acquired_ms: dict[int, float] = {}

    def ask(self, member_id: str, at_ms: float) -> Asked:
        """Note that a request has come to a leader."""
        return Asked(member_id, self._next(), at_ms)

    def _next(self) -> int:
        self._moment += 1
        return self._moment

    # --- what members do ---

    def let_go(self, member_id: str) -> None:
        """Note that a member's sessions may end, which releases what it has."""
        self._let_go[member_id] = self._next()
        for partition in self._records.values():
            for record in partition.values():
                for claims in record.claims.values():
                    for claim in claims:
                        claim.is_let_go |= claim.member_id == member_id

    def say(self, member_id: str, partition: int, offset: int, kind: AcknowledgeType) -> None:
        """Note that a leader gets a member's word for a record."""
        if kind is AcknowledgeType.RENEW:
            return
        record = self._records[partition][offset]
        record.words.add(kind)
        if kind in _COMPLETES:
            record.completed_by.add(member_id)
        for claims in record.claims.values():
            for claim in claims:
                claim.is_let_go |= claim.member_id == member_id

    def assign(self, partition: int, now_ms: float) -> None:
        """Note that a heartbeat was answered with a partition that the member did not have."""
        self._assigned_ms[partition] = now_ms

    def assigned_ms(self, partition: int) -> float:
        """Return the time of the last such answer for a partition; infinity without one."""
        return self._assigned_ms.get(partition, inf)

    def take(self, partition: int, now_ms: float) -> None:
        """Note that a member gets records of a partition."""
        self._acquired_ms[partition] = now_ms

    def acquired_ms(self, partition: int) -> float:
        """Return the time at which a member last got records of a partition; 0 without one."""
        return self._acquired_ms.get(partition, 0.0)

    # --- what leaders answer ---

    def on_acquired(
        self, asked: Asked, term: Term, partition: int, offset: int, count: int, now_ms: float
    ) -> None:
        """Check that a member may have a record; `now_ms` is the leader's time."""
        record = self._records[partition][offset]
        message = f"{partition}-{offset} to {asked} of {term} at {now_ms:.1f}: {record}"
        self._check_count(record, asked, term, count, message)
        self._check_accepted(record, asked, term, message)
        claims = record.claims.setdefault(term, [])
        is_released = self._let_go.get(asked.member_id, 0) > asked.moment
        if not is_released:
            self._check_one(claims, asked, count, now_ms, message)
        claim = _Claim(
            asked.member_id, self._next(), asked.at_ms, now_ms, count, is_let_go=is_released
        )
        claims.append(claim)
        record.deliveries = max(record.deliveries, count)

    def _check_one(
        self, claims: Iterable[_Claim], asked: Asked, count: int, now_ms: float, message: str
    ) -> None:
        """Check that the lock of each other claim is over, or that this one's was before it.

        An answer that waits for a write may come after that to a later delivery.
        """
        shortest_ms = self._settings.lock_ms - _ROUNDING_MS
        for claim in claims:
            if claim.delivery_count > count:
                is_over = claim.answered_ms >= asked.at_ms + shortest_ms
            else:
                is_over = now_ms >= claim.asked_ms + shortest_ms
            if not claim.is_let_go and not is_over:
                raise PropertyViolatedError(promises.ONE_MEMBER, message)
        self._checks.held(promises.ONE_MEMBER)

    def _check_count(
        self, record: _Record, asked: Asked, term: Term, count: int, message: str
    ) -> None:
        counts = [
            one.delivery_count for one in record.claims.get(term, ()) if one.moment < asked.moment
        ]
        released = record.released
        if released is not None and _is_known(released, asked, term):
            counts.append(released.delivery_count)
        is_next = count > max(counts, default=0) and count <= self._settings.delivery_count_limit
        self._checks.demand(promises.DELIVERIES_COUNTED, message, holds=is_next)

    def _check_accepted(self, record: _Record, asked: Asked, term: Term, message: str) -> None:
        accepted = record.accepted
        if accepted is not None and _is_known(accepted, asked, term):
            raise PropertyViolatedError(promises.ACCEPTED_ONCE, message)
        self._checks.held(promises.ACCEPTED_ONCE)

    def on_written(
        self, asked: Asked, term: Term, partition: int, offset: int, kind: AcknowledgeType
    ) -> None:
        """Note that a leader has taken a member's word for a record, and check that it had it."""
        record = self._records[partition][offset]
        before = [one for one in record.claims.get(term, ()) if one.moment < asked.moment]
        if not before:
            return
        message = f"{partition}-{offset}, {kind.name} of {asked} to {term}: {record}"
        # A word for what lies before the start offset is heard, and changes nothing.
        if self._is_done(partition, offset, but_for=asked.member_id):
            return
        last = max(before, key=lambda one: one.delivery_count)
        is_own = last.member_id == asked.member_id
        self._checks.demand(promises.ONE_MEMBER, message, holds=is_own)
        written = _Written(self._next(), term.leader_epoch, last.delivery_count)
        if kind is AcknowledgeType.ACCEPT:
            record.accepted = record.accepted or written
        elif kind is AcknowledgeType.RELEASE:
            record.released = written

    # --- what coordinators are asked to keep ---

    def on_initialize(self, partition: int) -> None:
        """Note that the state of a share partition may begin again: what was written is excused.

        As in Kafka, the request may have been repeated, and come when the state is in use.
        """
        for record in self._records[partition].values():
            record.accepted = record.released = None

    def on_write(self, partition: int, write: WriteShareGroupStateRequest.PartitionData) -> None:
        """Check the state of a share partition that its leader wants kept."""
        for batch in write.state_batches:
            is_done = batch.delivery_state in {RecordState.ACKNOWLEDGED, RecordState.ARCHIVED}
            is_last = batch.delivery_count >= self._settings.delivery_count_limit
            is_exhausted = is_last and batch.delivery_state in _DEAD
            for offset in range(batch.first_offset, batch.last_offset + 1):
                self._records[partition][offset].is_exhausted |= is_exhausted
                if is_done and offset >= write.start_offset:
                    self._demand_done(promises.DONE_FOR_A_REASON, partition, offset, f"{write}")
        checked_to = self._checked_to.get(partition, 0)
        for offset in range(checked_to, write.start_offset):
            if self._records[partition][offset].deliveries:
                self._demand_done(promises.START_AFTER_DONE, partition, offset, f"{write}")
        self._checked_to[partition] = max(checked_to, write.start_offset)

    def check_end(
        self,
        partition: int,
        records: Iterable[int],
        state_start: int,
        done: set[int],
        message: str,
    ) -> None:
        """Check that every record of a partition is done with, and for a reason.

        `records` are the offsets of those that members are to have; they are below the start offset
        `state_start` of the share partition's state, or among those that are `done`.
        """
        for offset in records:
            is_done = offset < state_start or offset in done
            found = f"{partition}-{offset}: {self._records[partition][offset]}; {message}"
            self._checks.demand(promises.ALL_SHARED, found, holds=is_done)
            self._demand_done(promises.START_AFTER_DONE, partition, offset, message)

    def check_letter(self, partition: int, offset: int, message: str) -> None:
        """Check that there is a reason for the dead letter of a record."""
        record = self._records[partition][offset]
        is_rejected = AcknowledgeType.REJECT in record.words
        is_dead = is_rejected or self._is_exhausted(record)
        message = f"{partition}-{offset}: {record}; {message}"
        self._checks.demand(promises.LETTERS_FOR_A_REASON, message, holds=is_dead)

    def dead_offsets(self, partition: int) -> Iterator[int]:
        """Yield the records that members have had, and that none has accepted or called a gap."""
        deleted_to = self._ledger.deleted_to(partition)
        for offset, record in self._records[partition].items():
            if offset >= deleted_to and record.deliveries and not record.words & _NEVER_DEAD:
                yield offset

    def _demand_done(self, promise: Property, partition: int, offset: int, message: str) -> None:
        """Demand a reason why a record is not delivered any more."""
        message = f"{offset}: {self._records[partition][offset]}; {message}"
        self._checks.demand(promise, message, holds=self._is_done(partition, offset))

    def _is_done(self, partition: int, offset: int, *, but_for: str = "") -> bool:
        """Return whether there is such a reason, other than the word of one member."""
        record = self._records[partition][offset]
        return (
            bool(record.completed_by - {but_for})
            or self._is_exhausted(record)
            or offset < self._ledger.deleted_to(partition)
        )

    def _is_exhausted(self, record: _Record) -> bool:
        """Return whether a record was delivered as often as may be."""
        is_last = record.deliveries >= self._settings.delivery_count_limit
        return record.is_exhausted or is_last


def _is_known(written: _Written, asked: Asked, term: Term) -> bool:
    """Return whether a leader knew what was written when a request came to it."""
    return written.moment < asked.moment and term.leader_epoch >= written.leader_epoch

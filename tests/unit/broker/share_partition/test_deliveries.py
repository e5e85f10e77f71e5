"""Deliveries to a share group, whatever its members, its locks and the writes of its state do."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.broker.share_partition.group import LOCK_MS, Group, settings

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_partition.acquisition import ShareAcquireMode
from kvorum.broker.share_partition.record_state import RecordState
from kvorum.broker.share_partition.state_write import StateWrite
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

MEMBERS = ("anne", "bert", "carl")
ROUNDS = 200
"""More fetches than it takes until all records are accepted, or delivered as often as may be."""

Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(["fetch", "fetch", "accept", "release", "reject", "written", "failed"])
        | st.sampled_from(["leave", "time", "append", "log start", "copied"]),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    max_size=60,
)


@dataclass
class Ledger:
    """The deliveries and what members said of them; each delivery is checked against it."""

    group: Group
    holders: dict[int, tuple[str, int]] = field(default_factory=dict[int, tuple[str, int]])
    """The member of each acquired record, and until when it is its member's."""
    deliveries: dict[int, int] = field(default_factory=dict[int, int])
    done: set[int] = field(default_factory=set[int])
    """The offsets of records that are written not to be available any more."""
    judged: set[int] = field(default_factory=set[int])
    """The offsets of records that a member has accepted or rejected."""
    pending: list[StateWrite] = field(default_factory=list[StateWrite])

    def fetch(self, member: str, max_records: int, mode: ShareAcquireMode) -> None:
        waiting = {offset for write in self.pending for offset in offsets(write)}
        until_ms = self.group.now_ms + LOCK_MS
        for first, last, count in self.group.acquire(member, max_records, mode=mode):
            for offset in range(first, last + 1):
                assert offset not in self.done
                assert offset not in waiting
                assert offset not in self.holders
                assert count > self.deliveries.get(offset, 0)
                assert count <= self.group.settings.delivery_count_limit
                self.deliveries[offset] = count
                self.holders[offset] = (member, until_ms)

    def acknowledge(self, kind: AcknowledgeType, begin: int, length: int) -> None:
        """Acknowledge some of what the member of one offset has."""
        held = sorted(self.holders)
        if not held:
            return
        first = held[begin % len(held)]
        member = self.holders[first][0]
        last = first
        while last - first < length and self.holders.get(last + 1, ("", 0))[0] == member:
            last += 1
        try:
            write = self.group.acknowledge(member, kind, (first, last))
        except RequestError:
            # Some of it waits for a write already.
            return
        if write is not None:
            self.pending.append(write)
            if kind is not AcknowledgeType.RELEASE:
                self.judged.update(offsets(write))

    def leave(self, member: str) -> None:
        write = self.group.partition.release_acquired_records(member)
        if write is not None:
            self.pending.append(write)

    def complete(self, index: int, error: ErrorCode) -> None:
        if not self.pending:
            return
        write = self.pending.pop(index % len(self.pending))
        self.group.bury(self.group.complete(write, error).dead_letters)
        if error is ErrorCode.NONE:
            self._take(write)

    def pass_time(self, ms: int) -> None:
        write = self.group.pass_time(ms)
        now_ms = self.group.now_ms
        held = self.holders.items()
        self.holders = {one: holder for one, holder in held if holder[1] > now_ms}
        if write is not None:
            self.group.bury(self.group.complete(write).dead_letters)
            self._take(write)

    def _take(self, write: StateWrite) -> None:
        for offset in offsets(write):
            self.holders.pop(offset, None)
        self.done.update(offsets(write, except_state=RecordState.AVAILABLE))


def offsets(write: StateWrite, *, except_state: RecordState | None = None) -> list[int]:
    return [
        offset
        for batch in write.data.state_batches
        if batch.delivery_state != except_state
        for offset in range(batch.first_offset, batch.last_offset + 1)
    ]


def play(ledger: Ledger, step: Step) -> None:
    group = ledger.group
    kind, number, other = step
    match kind:
        case "fetch":
            mode = ShareAcquireMode(other % 2)
            ledger.fetch(MEMBERS[number % len(MEMBERS)], 1 + other, mode)
        case "accept":
            ledger.acknowledge(AcknowledgeType.ACCEPT, number, other)
        case "release":
            ledger.acknowledge(AcknowledgeType.RELEASE, number, other)
        case "reject":
            ledger.acknowledge(AcknowledgeType.REJECT, number, other)
        case "written":
            ledger.complete(number, ErrorCode.NONE)
        case "failed":
            ledger.complete(number, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        case "leave":
            ledger.leave(MEMBERS[number % len(MEMBERS)])
        case "time":
            ledger.pass_time(number * LOCK_MS // 50)
        case "log start":
            start = min(group.partition.start_offset + other % 5, group.end_offset)
            group.move_log_start(max(start, group.log_start_offset))
        case _:
            group.append(1 + number % 9)


def finish(ledger: Ledger) -> None:
    """Have all writes succeed from now on, and one member accept all that it is given.

    One more record comes in any case.
    """
    group = ledger.group
    group.append(1)
    for _ in range(ROUNDS):
        while ledger.pending:
            ledger.complete(0, ErrorCode.NONE)
        ledger.pass_time(LOCK_MS)
        ledger.fetch("anne", 500, ShareAcquireMode.BATCH_OPTIMIZED)
        for _ in range(len(ledger.holders)):
            ledger.acknowledge(AcknowledgeType.ACCEPT, 0, 500)
            ledger.complete(0, ErrorCode.NONE)
        if group.partition.start_offset == group.end_offset:
            return


@given(steps=steps, limit=st.integers(1, 6), has_dead_letters=st.booleans())
def test_every_record_is_given_to_one_at_a_time_until_it_is_done(
    steps: list[Step], limit: int, *, has_dead_letters: bool
) -> None:
    """Each is accepted, rejected, delivered as often as may be, or deleted from the log."""
    chosen = settings(
        record_locks_max=60, delivery_count_limit=limit, has_dead_letters=has_dead_letters
    )
    ledger = Ledger(Group(chosen))
    ledger.group.load()
    ledger.group.append(5, 1, 3)
    for step in steps:
        play(ledger, step)
    finish(ledger)
    partition = ledger.group.partition
    assert partition.start_offset == ledger.group.end_offset
    assert partition.records.record_count == 0
    log_start_offset = ledger.group.log_start_offset
    kept = range(log_start_offset, partition.start_offset)
    exhausted = [one for one in kept if one not in ledger.done or one not in ledger.judged]
    assert all(ledger.deliveries[one] == limit for one in exhausted)

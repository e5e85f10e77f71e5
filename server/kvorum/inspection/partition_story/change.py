"""One change of a partition, the reasons for it, and the facts about brokers around it.

The controller writes the records of one decision in a row (see
`kvorum.history.leader_change_causes`), so what ends a run of partition changes may explain
them, and so may what began it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum, unique
from typing import NamedTuple

from kvorum.history.leader_change_causes import DepartedBroker, departed_broker, unfenced_broker
from kvorum.history.tables import LeaderChangeCause, PartitionTimelineRow
from kvorum.metadata.partition import NO_LEADER, RECOVERED
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.primitives import Message

_BEGUN = 1


@unique
class ReasonKind(StrEnum):
    """Kinds of reasons, as far as the log contains them; causes of leader changes among them."""

    PARTITION_CREATED = LeaderChangeCause.PARTITION_CREATED.value
    OLDER_THAN_LOG = "older_than_log"
    BROKER_FENCED = LeaderChangeCause.BROKER_FENCED.value
    CONTROLLED_SHUTDOWN = LeaderChangeCause.CONTROLLED_SHUTDOWN.value
    BROKER_UNREGISTERED = LeaderChangeCause.BROKER_UNREGISTERED.value
    BROKER_RESTARTED = LeaderChangeCause.BROKER_RESTARTED.value
    DIRECTORY_FAILED = LeaderChangeCause.DIRECTORY_FAILED.value
    BROKER_UNFENCED = LeaderChangeCause.BROKER_UNFENCED.value
    PREFERRED_ELECTION = LeaderChangeCause.PREFERRED_ELECTION.value
    UNCLEAN_ELECTION = LeaderChangeCause.UNCLEAN_ELECTION.value
    REASSIGNMENT_BEGUN = "reassignment_begun"
    REASSIGNMENT_COMPLETED = "reassignment_completed"
    REASSIGNMENT_CANCELLED = "reassignment_cancelled"
    REASSIGNMENT_CHANGED = "reassignment_changed"
    ISR_SHRUNK = "isr_shrunk"
    ISR_EXPANDED = "isr_expanded"
    LEADER_RECOVERED = "leader_recovered"
    DIRECTORY_ASSIGNED = "directory_assigned"
    ELR_CHANGED = "elr_changed"
    UNKNOWN = LeaderChangeCause.UNKNOWN.value


class Reason(NamedTuple):
    """A reason, with the brokers that it is about; none for what is about the partition."""

    kind: ReasonKind
    brokers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A record that changed a partition: the state before it (None for the first) and after it.

    `epoch` is that of the controller. The place and time of the record are those where `after`
    begins.
    """

    before: PartitionTimelineRow | None
    after: PartitionTimelineRow
    epoch: int
    reasons: tuple[Reason, ...]

    @property
    def offset(self) -> int:
        """The offset of the record."""
        return self.after.from_offset

    @property
    def timestamp_ms(self) -> int:
        """The time of the record, in milliseconds since 1970."""
        return self.after.from_time


class Surroundings(NamedTuple):
    """The brokers in controlled shutdown, and those whose records are around the changes.

    `unfenced` is the broker that the record before them unfenced, -1 for another record;
    `departed` is the one that the record after them is about.
    """

    in_controlled_shutdown: frozenset[int] = frozenset()
    unfenced: int = NO_LEADER
    departed: DepartedBroker | None = None


@dataclass(slots=True)
class SurroundingsOfChanges:
    """Follows the records of a log; `of` has the surroundings of each offset that was noted."""

    _shutting_down: set[int] = field(default_factory=set[int])
    _unfenced: int = NO_LEADER
    _waiting: list[int] = field(default_factory=list[int])
    _known: dict[int, Surroundings] = field(default_factory=dict[int, Surroundings])

    def follow(self, message: Message, offset: int, *, is_noted: bool) -> None:
        """Take in the next record; `is_noted` for a change of the partition in question."""
        if is_noted:
            self._known[offset] = Surroundings(frozenset(self._shutting_down), self._unfenced)
        if isinstance(message, PartitionChangeRecord):
            if is_noted:
                self._waiting.append(offset)
            return
        if self._waiting:
            departed = departed_broker(message)
            for each in self._waiting:
                self._known[each] = self._known[each]._replace(departed=departed)
            self._waiting = []
        self._unfenced = unfenced_broker(message)
        self._note_shutdown(message)

    def of(self, offset: int) -> Surroundings:
        """Return the surroundings of a record; nothing is known of one that was not noted."""
        return self._known.get(offset, Surroundings())

    def _note_shutdown(self, message: Message) -> None:
        match message:
            case BrokerRegistrationChangeRecord(
                broker_id=broker_id, in_controlled_shutdown=in_controlled_shutdown
            ):
                if in_controlled_shutdown == _BEGUN:
                    self._shutting_down.add(broker_id)
            case RegisterBrokerRecord(broker_id=broker_id):
                self._shutting_down.discard(broker_id)
                if message.in_controlled_shutdown:
                    self._shutting_down.add(broker_id)
            case UnregisterBrokerRecord(broker_id=broker_id):
                self._shutting_down.discard(broker_id)
            case _:
                return


def reasons_for(
    before: PartitionTimelineRow,
    after: PartitionTimelineRow,
    surroundings: Surroundings,
    cause: str | None,
) -> tuple[Reason, ...]:
    """Return what explains a change; `cause` is that of its leader change, if it is one."""
    found = dict.fromkeys(
        (
            *_of_leader(before, after, surroundings, cause),
            *_of_reassignment(before, after),
            *_of_removals(before, after, surroundings, cause),
            *_of_additions(before, after, cause),
            *_of_the_rest(before, after),
        )
    )
    if not found:
        return (Reason(ReasonKind.ELR_CHANGED),)
    known = tuple(reason for reason in found if reason.kind is not ReasonKind.UNKNOWN)
    return known or tuple(found)


def _of_leader(
    before: PartitionTimelineRow,
    after: PartitionTimelineRow,
    surroundings: Surroundings,
    cause: str | None,
) -> Iterator[Reason]:
    if before.leader == NO_LEADER != after.leader == surroundings.unfenced:
        yield Reason(ReasonKind.BROKER_UNFENCED, (after.leader,))
    # A reassignment shows in the replicas.
    if cause is None or cause == LeaderChangeCause.REASSIGNMENT:
        return
    kind = ReasonKind(cause)
    match kind:
        case ReasonKind.BROKER_UNFENCED | ReasonKind.PREFERRED_ELECTION:
            yield Reason(kind, (after.leader,))
        case ReasonKind.UNKNOWN | ReasonKind.UNCLEAN_ELECTION:
            yield Reason(kind)
        case _:
            yield Reason(kind, (before.leader,))


def _of_reassignment(before: PartitionTimelineRow, after: PartitionTimelineRow) -> Iterator[Reason]:
    was_going_on = bool(before.adding_replicas or before.removing_replicas)
    goes_on = bool(after.adding_replicas or after.removing_replicas)
    if not was_going_on and goes_on:
        yield Reason(ReasonKind.REASSIGNMENT_BEGUN)
    elif not goes_on and was_going_on:
        is_back = _is_cancelled(before, after)
        yield Reason(
            ReasonKind.REASSIGNMENT_CANCELLED if is_back else ReasonKind.REASSIGNMENT_COMPLETED
        )
    elif not goes_on and before.replicas != after.replicas:
        # One that needs no new replica is done within one record.
        yield Reason(ReasonKind.REASSIGNMENT_COMPLETED)
    elif _replicas(before) != _replicas(after):
        yield Reason(ReasonKind.REASSIGNMENT_CHANGED)


def _replicas(state: PartitionTimelineRow) -> tuple[tuple[int, ...], ...]:
    return state.replicas, state.adding_replicas, state.removing_replicas


def _is_cancelled(before: PartitionTimelineRow, after: PartitionTimelineRow) -> bool:
    """Return whether a reassignment ended with the replicas of before it."""
    was_going_on = before.adding_replicas or before.removing_replicas
    if not was_going_on or after.adding_replicas or after.removing_replicas:
        return False
    return {*after.replicas} == {*before.replicas} - {*before.adding_replicas}


def _of_removals(
    before: PartitionTimelineRow,
    after: PartitionTimelineRow,
    surroundings: Surroundings,
    cause: str | None,
) -> Iterator[Reason]:
    departed = surroundings.departed
    if departed is not None and departed.broker_id in _given_up(before, after):
        yield Reason(ReasonKind(departed.cause), (departed.broker_id,))
    dropped: list[int] = []
    for broker in before.isr:
        if broker in after.isr or broker not in after.replicas:
            continue
        if departed is not None and departed.broker_id == broker:
            yield Reason(ReasonKind(departed.cause), (broker,))
        elif cause == LeaderChangeCause.UNCLEAN_ELECTION:
            # The new leader alone is in sync, whatever the others did.
            continue
        elif broker in surroundings.in_controlled_shutdown:
            yield Reason(ReasonKind.CONTROLLED_SHUTDOWN, (broker,))
        elif before.leader == after.leader:
            dropped.append(broker)
    if dropped:
        yield Reason(ReasonKind.ISR_SHRUNK, tuple(dropped))


def _given_up(before: PartitionTimelineRow, after: PartitionTimelineRow) -> set[int]:
    """Return the replicas that cannot be elected any more, for what they may lack."""
    return {*before.eligible_leader_replicas} - {*after.eligible_leader_replicas, *after.isr}


def _of_additions(
    before: PartitionTimelineRow, after: PartitionTimelineRow, cause: str | None
) -> Iterator[Reason]:
    added = tuple(broker for broker in after.isr if broker not in before.isr)
    # Any other election, and a cancelled reassignment, put the new leader into the ISR themselves.
    is_of_leader = cause in {None, LeaderChangeCause.REASSIGNMENT} and before.leader != NO_LEADER
    if added and is_of_leader and not _is_cancelled(before, after):
        yield Reason(ReasonKind.ISR_EXPANDED, added)


def _of_the_rest(before: PartitionTimelineRow, after: PartitionTimelineRow) -> Iterator[Reason]:
    if before.leader_recovery_state != after.leader_recovery_state == RECOVERED:
        yield Reason(ReasonKind.LEADER_RECOVERED)
    old = dict(zip(before.replicas, before.directories, strict=True))
    moved = tuple(
        replica
        for replica, directory in zip(after.replicas, after.directories, strict=True)
        if replica in old and old[replica] != directory
    )
    if moved:
        yield Reason(ReasonKind.DIRECTORY_ASSIGNED, moved)

"""The causes of leader changes, derived from the records around them.

A PartitionChangeRecord does not contain its cause, but the controller writes the records of one
decision in a row, in an order that its code fixes (ReplicationControlManager,
ClusterControlManager):

1. A broker is fenced, unregistered, or replaced by a new incarnation, or loses a directory: the
   changes of its partitions come first, the record about the broker follows directly.
2. A broker is unfenced: its record comes first, then the partitions that it leads from now on.
3. A broker begins its controlled shutdown: its record comes first, and it keeps that state.
4. Preferred elections and reassignments are changes of partitions alone; what they change shows
   what they are.

So the changes of a run of PartitionChangeRecords wait for the record that ends the run. A cause
that the log does not contain is `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kvorum.history.intervals import Position
from kvorum.history.tables import LeaderChangeCause, LeaderChangeRow
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.partition import NO_LEADER, RECOVERING, PartitionRegistration
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.fence_broker_record import FenceBrokerRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.primitives import Message

_UNFENCE = -1
_FENCE = 1


class PartitionName(NamedTuple):
    """The name of a partition as rows contain it; the id as text."""

    topic_name: str
    topic_id: str
    partition_id: int


class DepartedBroker(NamedTuple):
    """A broker that left or failed, and the cause that this is of leader changes."""

    broker_id: int
    cause: LeaderChangeCause


class WaitingRow(NamedTuple):
    """A row that has not been yielded; the end of the run decides on its cause if it is open."""

    row: LeaderChangeRow
    is_cause_open: bool


class LeaderChanges:
    """The leader changes of the current run of PartitionChangeRecords, and their causes."""

    __slots__ = ("_unfenced_broker", "_waiting")

    def __init__(
        self, waiting: list[WaitingRow] | None = None, unfenced_broker: int = NO_LEADER
    ) -> None:
        self._waiting = waiting or []
        self._unfenced_broker = unfenced_broker

    def created(
        self, name: PartitionName, after: PartitionRegistration, position: Position
    ) -> LeaderChangeRow:
        """Return the row of a partition's first leader."""
        return _row(name, None, after, position, LeaderChangeCause.PARTITION_CREATED)

    def changed(
        self,
        name: PartitionName,
        before: PartitionRegistration,
        after: PartitionRegistration,
        *,
        cluster: ClusterImage,
        position: Position,
    ) -> list[LeaderChangeRow]:
        """Return the row of a change of the leader, none while its cause is still open."""
        cause = self._cause_in_record(before, after, cluster)
        row = _row(name, before, after, position, cause or _fallback(before, after))
        if cause is not None and not self._waiting:
            return [row]
        self._waiting.append(WaitingRow(row, is_cause_open=cause is None))
        return []

    def end_run(self, message: Message) -> Iterator[LeaderChangeRow]:
        """Yield the rows that wait for `message`, a record that changes no partition."""
        if self._waiting:
            decided = departed_broker(message)
            for row, is_cause_open in self._waiting:
                if is_cause_open and decided is not None and decided.broker_id == row.old_leader:
                    yield row._replace(cause=decided.cause)
                else:
                    yield row
            self._waiting = []
        self._unfenced_broker = unfenced_broker(message)

    def open_rows(self) -> Iterator[LeaderChangeRow]:
        """Yield the rows that wait, with the causes that are known so far."""
        yield from (row for row, _ in self._waiting)

    def to_saved(self) -> dict[str, Any]:
        """Return the state for `from_saved`."""
        return {"waiting": self._waiting, "unfenced_broker": self._unfenced_broker}

    @classmethod
    def from_saved(cls, saved: dict[str, Any]) -> LeaderChanges:
        """Return the leader changes that `to_saved` wrote."""
        waiting = [
            WaitingRow(LeaderChangeRow(*fields), is_cause_open=is_open)
            for fields, is_open in saved["waiting"]
        ]
        return cls(waiting, saved["unfenced_broker"])

    def _cause_in_record(
        self, before: PartitionRegistration, after: PartitionRegistration, cluster: ClusterImage
    ) -> LeaderChangeCause | None:
        """Return the cause that the change itself shows, None where later records decide."""
        if before.replicas != after.replicas:
            return LeaderChangeCause.REASSIGNMENT
        if before.leader == NO_LEADER:
            return self._cause_of_first_leader(before, after)
        if after.leader != NO_LEADER and before.leader in after.isr:
            is_preferred = after.has_preferred_leader and not _is_unclean(before, after)
            return (
                LeaderChangeCause.PREFERRED_ELECTION if is_preferred else _fallback(before, after)
            )
        broker = cluster.brokers.get(before.leader)
        if broker is None:
            return None
        if broker.is_in_controlled_shutdown:
            return LeaderChangeCause.CONTROLLED_SHUTDOWN
        is_replica = before.leader in before.replicas
        if is_replica and not broker.has_online_directory(before.directory(before.leader)):
            return LeaderChangeCause.DIRECTORY_FAILED
        return None

    def _cause_of_first_leader(
        self, before: PartitionRegistration, after: PartitionRegistration
    ) -> LeaderChangeCause:
        """Return the cause for which a partition without a leader gets one."""
        if _is_unclean(before, after):
            return LeaderChangeCause.UNCLEAN_ELECTION
        if after.leader == self._unfenced_broker:
            return LeaderChangeCause.BROKER_UNFENCED
        return LeaderChangeCause.UNKNOWN


def _is_unclean(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """Return whether the new leader may lack records that were acknowledged.

    A replica outside of the ISR is no proof: the record that makes it the leader may also complete
    a reassignment, for which it has just come into sync.
    """
    if after.leader == NO_LEADER:
        return False
    was_eligible = after.leader in before.isr or after.leader in before.elr
    if after.leader_recovery_state == RECOVERING:
        return before.leader_recovery_state != RECOVERING or not was_eligible
    # Kafka does not mark the leader as recovering when a reassignment is cancelled whose new
    # replicas alone are in sync: a replica of before then leads without having been in sync.
    only_new_in_sync = bool(before.isr) and set(before.isr) <= set(before.adding_replicas)
    return not was_eligible and only_new_in_sync


def _fallback(before: PartitionRegistration, after: PartitionRegistration) -> LeaderChangeCause:
    """Return the cause of a change that no record about a broker explains."""
    if _is_unclean(before, after):
        return LeaderChangeCause.UNCLEAN_ELECTION
    return LeaderChangeCause.UNKNOWN


def departed_broker(message: Message) -> DepartedBroker | None:
    """Return the broker that left or failed by a record, None for any other record."""
    match message:
        case BrokerRegistrationChangeRecord(broker_id=broker_id, fenced=fenced, log_dirs=log_dirs):
            if fenced == _FENCE:
                return DepartedBroker(broker_id, LeaderChangeCause.BROKER_FENCED)
            failed = DepartedBroker(broker_id, LeaderChangeCause.DIRECTORY_FAILED)
            return failed if log_dirs else None
        case FenceBrokerRecord(id=broker_id):
            return DepartedBroker(broker_id, LeaderChangeCause.BROKER_FENCED)
        case UnregisterBrokerRecord(broker_id=broker_id):
            return DepartedBroker(broker_id, LeaderChangeCause.BROKER_UNREGISTERED)
        case RegisterBrokerRecord(broker_id=broker_id):
            return DepartedBroker(broker_id, LeaderChangeCause.BROKER_RESTARTED)
        case _:
            return None


def unfenced_broker(message: Message) -> int:
    """Return the broker that a record unfences, -1 for any other record."""
    match message:
        case BrokerRegistrationChangeRecord(broker_id=broker_id, fenced=fenced):
            return broker_id if fenced == _UNFENCE else NO_LEADER
        case UnfenceBrokerRecord(id=broker_id):
            return broker_id
        case _:
            return NO_LEADER


def _row(
    name: PartitionName,
    before: PartitionRegistration | None,
    after: PartitionRegistration,
    position: Position,
    cause: LeaderChangeCause,
) -> LeaderChangeRow:
    return LeaderChangeRow(
        topic_name=name.topic_name,
        topic_id=name.topic_id,
        partition_id=name.partition_id,
        offset=position.offset,
        time=position.timestamp_ms,
        controller_epoch=position.epoch,
        old_leader=None if before is None else before.leader,
        new_leader=after.leader,
        old_leader_epoch=None if before is None else before.leader_epoch,
        leader_epoch=after.leader_epoch,
        partition_epoch=after.partition_epoch,
        is_unclean=before is not None and _is_unclean(before, after),
        cause=cause,
    )

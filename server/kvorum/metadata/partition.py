"""One partition as the metadata log knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvorum.metadata import directory_ids
from kvorum.metadata.errors import ReplayError
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
NO_RECOVERY_CHANGE: Final = -1


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """Replicas, leader and epochs of a partition.

    `directories` has one entry a replica; `elr` are the eligible leader replicas and
    `last_known_elr` the last leader of a partition that lost all of them (KIP-966).
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_recovery_state: int = RECOVERED
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        """Whether somebody leads the partition."""
        return self.leader != NO_LEADER

    @property
    def preferred_replica(self) -> int:
        """The replica that should lead when it can."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        """Whether the replica leads that should."""
        return self.leader == self.preferred_replica

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are on their way in or out."""
        return bool(self.removing_replicas or self.adding_replicas)

    def directory(self, replica: int) -> bytes:
        """Return the log directory of `replica`; `ValueError` where it is no replica."""
        return self.directories[self.replicas.index(replica)]


def partition_from_record(record: PartitionRecord) -> PartitionRegistration:
    """Return the partition that `record` describes whole."""
    replicas = tuple(record.replicas)
    return PartitionRegistration(
        replicas=replicas,
        directories=_directories(record.directories, replicas),
        isr=tuple(record.isr),
        removing_replicas=tuple(record.removing_replicas),
        adding_replicas=tuple(record.adding_replicas),
        leader=record.leader,
        leader_recovery_state=_recovery_state(record.leader_recovery_state),
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
    )


def merge_partition_change(
    partition: PartitionRegistration, record: PartitionChangeRecord
) -> PartitionRegistration:
    """Return `partition` as `record` changes it.

    Fields that are not set stay as they are. The partition epoch always rises; the leader epoch
    rises whenever a leader is named, be it the same one.
    """
    replicas = _changed(partition.replicas, record.replicas)
    directories = record.directories
    names_leader = record.leader != NO_LEADER_CHANGE
    recovery = record.leader_recovery_state
    return PartitionRegistration(
        replicas=replicas,
        directories=_directories(
            partition.directories if directories is None else directories, replicas
        ),
        isr=_changed(partition.isr, record.isr),
        removing_replicas=_changed(partition.removing_replicas, record.removing_replicas),
        adding_replicas=_changed(partition.adding_replicas, record.adding_replicas),
        leader=record.leader if names_leader else partition.leader,
        leader_recovery_state=(
            partition.leader_recovery_state
            if recovery == NO_RECOVERY_CHANGE
            else _recovery_state(recovery)
        ),
        leader_epoch=partition.leader_epoch + names_leader,
        partition_epoch=partition.partition_epoch + 1,
        elr=_changed(partition.elr, record.eligible_leader_replicas),
        last_known_elr=_changed(partition.last_known_elr, record.last_known_elr),
    )


def without_elr(partition: PartitionRegistration) -> PartitionRegistration:
    """Return `partition` with no eligible leader replicas; itself where it had none."""
    if not (partition.elr or partition.last_known_elr):
        return partition
    return merge_partition_change(
        partition, PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[])
    )


def _changed(current: tuple[int, ...], change: list[int] | None) -> tuple[int, ...]:
    return current if change is None else tuple(change)


def _directories(
    directories: list[bytes] | tuple[bytes, ...] | None, replicas: tuple[int, ...]
) -> tuple[bytes, ...]:
    """Return one directory a replica; nothing, or only MIGRATING, means MIGRATING for all."""
    if not directories or all(entry == directory_ids.MIGRATING for entry in directories):
        return (directory_ids.MIGRATING,) * len(replicas)
    if len(directories) != len(replicas):
        raise ReplayError(
            f"a partition with {len(replicas)} replicas is given {len(directories)} directories"
        )
    return tuple(directories)


def _recovery_state(value: int) -> int:
    if value not in (RECOVERED, RECOVERING):
        raise ReplayError(f"{value} is not a leader recovery state")
    return value

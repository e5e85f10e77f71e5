"""One partition as the metadata log knows it, and those of one topic by index, in little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata import directory_ids
from kvorum.metadata.errors import ReplayError
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord

NO_LEADER: Final = -1
NO_LEADER_CHANGE: Final = -2
RECOVERED: Final = 0
RECOVERING: Final = 1
NO_RECOVERY_CHANGE: Final = -1
_NOTHING: Final[Mapping[int, PartitionRegistration]] = MappingProxyType({})


class PartitionRegistration(NamedTuple):
    """Replicas, leader and epochs of a partition.

    `directories` has one entry per replica; `elr` are the eligible leader replicas, and
    `last_known_elr` is the last leader of a partition that lost all of them (KIP-966).
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
        """Whether the partition has a leader."""
        return self.leader != NO_LEADER

    @property
    def preferred_replica(self) -> int:
        """The first replica, which leads the partition whenever it can."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def has_preferred_leader(self) -> bool:
        """Whether the preferred replica is the leader."""
        return self.leader == self.preferred_replica

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.removing_replicas or self.adding_replicas)

    def directory(self, replica: int) -> bytes:
        """Return the log directory of `replica`; `ValueError` without such a replica."""
        return self.directories[self.replicas.index(replica)]


def partition_from_record(record: PartitionRecord) -> PartitionRegistration:
    """Return the partition whose complete state `record` contains."""
    replicas = tuple(record.replicas)
    # Arguments by position are faster: a log of a million partitions must be read in seconds.
    return PartitionRegistration(
        replicas,
        _directories(record.directories, replicas),
        tuple(record.isr),
        tuple(record.removing_replicas),
        tuple(record.adding_replicas),
        record.leader,
        _recovery_state(record.leader_recovery_state),
        record.leader_epoch,
        record.partition_epoch,
        tuple(record.eligible_leader_replicas or ()),
        tuple(record.last_known_elr or ()),
    )


def merge_partition_change(
    partition: PartitionRegistration, record: PartitionChangeRecord
) -> PartitionRegistration:
    """Return `partition` with the changes of `record`.

    Fields that the record does not set keep their values. The partition epoch always rises; the
    leader epoch rises whenever the record names a leader, even the same one.
    """
    replicas = _changed(partition.replicas, record.replicas)
    directories = record.directories
    names_leader = record.leader != NO_LEADER_CHANGE
    recovery = record.leader_recovery_state
    return PartitionRegistration(
        replicas,
        partition.directories
        if directories is None and replicas is partition.replicas
        else _directories(partition.directories if directories is None else directories, replicas),
        _changed(partition.isr, record.isr),
        _changed(partition.removing_replicas, record.removing_replicas),
        _changed(partition.adding_replicas, record.adding_replicas),
        record.leader if names_leader else partition.leader,
        partition.leader_recovery_state
        if recovery == NO_RECOVERY_CHANGE
        else _recovery_state(recovery),
        partition.leader_epoch + names_leader,
        partition.partition_epoch + 1,
        _changed(partition.elr, record.eligible_leader_replicas),
        _changed(partition.last_known_elr, record.last_known_elr),
    )


def without_elr(partition: PartitionRegistration) -> PartitionRegistration:
    """Return `partition` without eligible leader replicas; unchanged where it has none."""
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
    """Return one directory per replica; MIGRATING for all if none, or only MIGRATING, is given."""
    if not directories or directories.count(directory_ids.MIGRATING) == len(directories):
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


class Partitions(Mapping[int, PartitionRegistration]):
    """An immutable mapping from index to partition, iterated in order of the indexes.

    Partitions are numbered without gaps, so a tuple holds them. A log may still create them in any
    order: a partition above a gap is kept in a separate mapping until the gap is filled.
    """

    __slots__ = ("_behind_gap", "_dense")

    def __init__(
        self,
        dense: tuple[PartitionRegistration, ...] = (),
        behind_gap: Mapping[int, PartitionRegistration] = _NOTHING,
    ) -> None:
        """Hold partitions 0, 1, … and those whose index is above the first missing one."""
        self._dense = dense
        self._behind_gap = behind_gap

    def __getitem__(self, index: int) -> PartitionRegistration:
        """Return a partition; `KeyError` without one."""
        if 0 <= index < len(self._dense):
            return self._dense[index]
        return self._behind_gap[index]

    def __iter__(self) -> Iterator[int]:
        """Yield every index in order."""
        return chain(range(len(self._dense)), sorted(self._behind_gap))

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self._dense) + len(self._behind_gap)

    def __eq__(self, other: object) -> bool:
        """Compare with other partitions, or with any mapping."""
        if isinstance(other, Partitions):
            return self._dense == other._dense and self._behind_gap == other._behind_gap
        return super().__eq__(other)

    def __hash__(self) -> int:
        """Return a hash, which is the same for equal partitions."""
        return hash((self._dense, len(self._behind_gap)))

    def in_order(self) -> Iterable[tuple[int, PartitionRegistration]]:
        """Return index and partition, by index; faster than `items`."""
        if not self._behind_gap:
            return enumerate(self._dense)
        return chain(enumerate(self._dense), sorted(self._behind_gap.items()))

    def edit(self) -> PartitionsEditor:
        """Return an editor that starts with these partitions."""
        return PartitionsEditor(self._dense, self._behind_gap)


NO_PARTITIONS: Final = Partitions()


class PartitionsEditor:
    """A mutable copy of `Partitions`, from which `finish` makes a new immutable one."""

    __slots__ = ("_behind_gap", "_dense")

    def __init__(
        self,
        dense: tuple[PartitionRegistration, ...],
        behind_gap: Mapping[int, PartitionRegistration],
    ) -> None:
        self._dense = list(dense)
        self._behind_gap = dict(behind_gap)

    def get(self, index: int) -> PartitionRegistration | None:
        """Return the current partition, None without one."""
        if 0 <= index < len(self._dense):
            return self._dense[index]
        return self._behind_gap.get(index)

    def put(self, index: int, partition: PartitionRegistration) -> None:
        """Add or replace a partition."""
        count = len(self._dense)
        if 0 <= index < count:
            self._dense[index] = partition
        elif index == count:
            self._dense.append(partition)
            while self._behind_gap and len(self._dense) in self._behind_gap:
                self._dense.append(self._behind_gap.pop(len(self._dense)))
        else:
            self._behind_gap[index] = partition

    def finish(self) -> Partitions:
        """Return the current partitions."""
        if not self._behind_gap:
            return Partitions(tuple(self._dense))
        return Partitions(tuple(self._dense), MappingProxyType(dict(self._behind_gap)))

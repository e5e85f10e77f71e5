"""One object for partitions that are alike: of a million there are few kinds."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.partition import PartitionRegistration

KINDS_MAX: Final = 16_384
"""More than the ways to place three replicas on 25 brokers. With more kinds than this, sharing
whole partitions saves little, and what is remembered is forgotten again and again."""


class SharedPartitions:
    """Remembers partitions, and their replicas and directories, to hand out the first of a kind.

    A cache: who uses it sees equal values, whatever it has forgotten. Images hand it on to those
    that are made of them.
    """

    __slots__ = ("_directories", "_ids", "_partitions", "_replicas")

    def __init__(self) -> None:
        self._partitions: dict[PartitionRegistration, PartitionRegistration] = {}
        self._replicas: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._directories: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
        self._ids: dict[bytes, bytes] = {}

    def share(self, partition: PartitionRegistration) -> PartitionRegistration:
        """Return a partition equal to `partition`, one that others may have already."""
        known = self._partitions.get(partition)
        return self._remember(partition) if known is None else known

    def _remember(self, partition: PartitionRegistration) -> PartitionRegistration:
        if len(self._partitions) >= KINDS_MAX:
            self._forget()
        replicas = self._share_replicas(partition.replicas)
        made = PartitionRegistration(
            replicas,
            self._share_directories(partition.directories),
            self._share_replicas(partition.isr),
            self._share_replicas(partition.removing_replicas),
            self._share_replicas(partition.adding_replicas),
            next((id_ for id_ in replicas if id_ == partition.leader), partition.leader),
            partition.leader_recovery_state,
            partition.leader_epoch,
            partition.partition_epoch,
            self._share_replicas(partition.elr),
            self._share_replicas(partition.last_known_elr),
        )
        self._partitions[made] = made
        return made

    def _forget(self) -> None:
        self._partitions.clear()
        self._replicas.clear()
        self._directories.clear()
        self._ids.clear()

    def _share_replicas(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        return self._replicas.setdefault(replicas, replicas)

    def _share_directories(self, directories: tuple[bytes, ...]) -> tuple[bytes, ...]:
        known = self._directories.get(directories)
        if known is None:
            known = tuple(self._ids.setdefault(id_, id_) for id_ in directories)
            self._directories[known] = known
        return known

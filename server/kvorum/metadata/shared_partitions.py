"""A cache of equal partitions: a million partitions have few distinct values."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.partition import PartitionRegistration

KINDS_MAX: Final = 16_384
"""More than the ways to place three replicas on 25 brokers. With more distinct values than this,
sharing whole partitions saves little, and the cache is cleared again and again."""


class SharedPartitions:
    """A cache that returns one object for equal partitions, and for their replicas and directories.

    A caller gets an equal value in any case, also after the cache was cleared. An image passes its
    cache on to the images that are made from it.
    """

    __slots__ = ("_directories", "_ids", "_partitions", "_replicas")

    def __init__(self) -> None:
        self._partitions: dict[PartitionRegistration, PartitionRegistration] = {}
        self._replicas: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._directories: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
        self._ids: dict[bytes, bytes] = {}

    def share(self, partition: PartitionRegistration) -> PartitionRegistration:
        """Return the cached partition that equals `partition`, which is added otherwise."""
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

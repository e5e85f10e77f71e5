"""Counts of partitions, in total, without leader and per broker, updated with each change."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from immutables import Map

from kvorum.metadata.partition import NO_LEADER, PartitionRegistration


class BrokerPartitions(NamedTuple):
    """The number of partitions that a broker leads, is in sync with, and is in the ELR of."""

    led: int = 0
    in_sync: int = 0
    eligible: int = 0


NONE_OF_BROKER: Final = BrokerPartitions()


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Counts over all partitions of an image; brokers with zero counts are left out.

    `not_preferred` counts the partitions that their first replica does not lead, including those
    without a leader.
    """

    all: int = 0
    leaderless: int = 0
    not_preferred: int = 0
    brokers: Map[int, BrokerPartitions] = field(default_factory=Map[int, BrokerPartitions])

    def of_broker(self, broker_id: int) -> BrokerPartitions:
        """Return the counts of one broker."""
        return self.brokers.get(broker_id, NONE_OF_BROKER)


class PartitionCountsEditor:
    """A builder of new counts from the partitions that are added and removed."""

    __slots__ = ("_base", "_changes")

    def __init__(self, base: PartitionCounts) -> None:
        self._base = base
        # Keyed by value: many partitions are equal, and each value is examined only once.
        self._changes: dict[PartitionRegistration, int] = {}

    def add(self, partition: PartitionRegistration) -> None:
        """Count a partition that is added."""
        self._changes[partition] = self._changes.get(partition, 0) + 1

    def remove(self, partition: PartitionRegistration) -> None:
        """Count a partition that is removed."""
        self._changes[partition] = self._changes.get(partition, 0) - 1

    def finish(self) -> PartitionCounts:
        """Return the counts with all changes so far."""
        if not self._changes:
            return self._base
        base = self._base
        everything, leaderless, not_preferred = base.all, base.leaderless, base.not_preferred
        brokers: dict[int, list[int]] = {}
        for partition, count in self._changes.items():
            if count:
                everything += count
                leaderless += 0 if partition.has_leader else count
                not_preferred += 0 if partition.has_preferred_leader else count
                _count_brokers(brokers, partition, count)
        self._changes = {}
        self._base = PartitionCounts(
            everything, leaderless, not_preferred, _summed(base.brokers, brokers)
        )
        return self._base


def _count_brokers(
    brokers: dict[int, list[int]], partition: PartitionRegistration, count: int
) -> None:
    if partition.leader != NO_LEADER:
        brokers.setdefault(partition.leader, [0, 0, 0])[0] += count
    for broker_id in partition.isr:
        brokers.setdefault(broker_id, [0, 0, 0])[1] += count
    for broker_id in partition.elr:
        brokers.setdefault(broker_id, [0, 0, 0])[2] += count


def _summed(
    base: Map[int, BrokerPartitions], changes: dict[int, list[int]]
) -> Map[int, BrokerPartitions]:
    summed = base.mutate()
    for broker_id, (led, in_sync, eligible) in changes.items():
        before = summed.get(broker_id, NONE_OF_BROKER)
        after = BrokerPartitions(
            before.led + led, before.in_sync + in_sync, before.eligible + eligible
        )
        if after != NONE_OF_BROKER:
            summed[broker_id] = after
        elif before is not NONE_OF_BROKER:
            del summed[broker_id]
    return summed.finish()

"""The partitions without writes while one broker stands still: none may fall out of sync."""

from collections.abc import Mapping
from typing import Final

from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.broker import Broker
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.properties.catalogue import PropertyViolatedError

PAUSE_MS: Final = 240
"""Longer than ``replica.lag.time.max.ms``, and no reason yet to fence the broker."""


class IdlePartitions:
    """The partitions that were idle, and had all replicas in sync, when a broker was paused."""

    def __init__(
        self,
        around: BrokerSurroundings,
        brokers: Mapping[int, Broker],
        partitions: Mapping[int, PartitionRegistration],
    ) -> None:
        self._around, self._brokers, self._partitions = around, brokers, partitions
        self._ends: dict[int, set[int]] = {}

    def pause_broker(self) -> None:
        """Let a broker stand still, and watch the ISRs from now on."""
        for index in range(self._around.settings.partitions):
            partition = self._partitions[index]
            if set(partition.isr) == set(partition.replicas):
                self._ends[index] = self._ends_of(index)
        self._around.random.choice(list(self._brokers.values())).machine.stall(PAUSE_MS)

    def on_change(self, index: int, before: PartitionRegistration) -> None:
        """Check a change; one without an election takes no replica out of the ISR."""
        after = self._partitions[index]
        is_idle = len(self._ends.get(index, ())) == 1 and self._ends_of(index) == self._ends[index]
        if not is_idle or after.leader_epoch != before.leader_epoch:
            return
        known = self._around.committed_image.cluster.brokers
        for member in set(before.isr) - set(after.isr):
            if member in known and not known[member].is_fenced:
                raise PropertyViolatedError(promises.IDLE_STAY_IN_SYNC, f"{before} became {after}")

    def check_end(self) -> None:
        """Count the partitions that were watched: what takes a replica out is seen as it comes."""
        self._around.checks.held(*[promises.IDLE_STAY_IN_SYNC] * len(self._ends))

    def _ends_of(self, index: int) -> set[int]:
        """Return the offsets at which the logs of a partition end that can be read."""
        replicas = [self._brokers[one].replica(index) for one in self._partitions[index].replicas]
        return {one.log.stored_end_offset for one in replicas if one is not None}

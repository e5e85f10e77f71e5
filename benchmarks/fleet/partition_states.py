"""Partitions of a made-up cluster, and the records that change them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord

NO_LEADER = -1


@dataclass(slots=True)
class PartitionState:
    """One partition as the records so far describe it."""

    topic_id: bytes
    partition_id: int
    replicas: list[int]
    isr: list[int] = field(default_factory=list[int])
    leader: int = NO_LEADER

    @classmethod
    def new(cls, topic_id: bytes, partition_id: int, replicas: list[int]) -> PartitionState:
        """Return a partition whose replicas are all in sync and whose first replica leads."""
        return cls(topic_id, partition_id, replicas, list(replicas), replicas[0])

    def record(self, directory_of: dict[int, bytes]) -> PartitionRecord:
        """Return the record that creates the partition."""
        return PartitionRecord(
            partition_id=self.partition_id,
            topic_id=self.topic_id,
            replicas=self.replicas,
            isr=self.isr,
            leader=self.leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory_of[replica] for replica in self.replicas],
        )

    def without(self, broker_id: int, live: Iterable[int]) -> PartitionChangeRecord | None:
        """Return the change after a broker has gone: out of the ISR, and no leader any longer.

        The last member of the ISR stays in it, and the partition then has no leader.
        """
        if broker_id not in self.isr:
            return None
        change = PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id)
        remaining = [one for one in self.isr if one != broker_id]
        if remaining:
            change.isr = self.isr = remaining
        elif self.leader == NO_LEADER:
            return None
        if self.leader == broker_id:
            alive = set(live)
            leaders = [one for one in self.replicas if one in remaining and one in alive]
            change.leader = self.leader = leaders[0] if leaders else NO_LEADER
        return change

    def with_synced(self, broker_id: int) -> PartitionChangeRecord | None:
        """Return the change after a replica has caught up; without a leader it becomes one."""
        if broker_id not in self.replicas:
            return None
        change = PartitionChangeRecord(partition_id=self.partition_id, topic_id=self.topic_id)
        if broker_id in self.isr:
            if self.leader != NO_LEADER:
                return None
            change.leader = self.leader = broker_id
            return change
        if self.leader == NO_LEADER:
            return None
        synced = {*self.isr, broker_id}
        change.isr = self.isr = [one for one in self.replicas if one in synced]
        return change

    def with_preferred_leader(self) -> PartitionChangeRecord | None:
        """Return the change by which the first replica leads again, if it is in sync."""
        preferred = self.replicas[0]
        if self.leader in {preferred, NO_LEADER} or preferred not in self.isr:
            return None
        self.leader = preferred
        return PartitionChangeRecord(
            partition_id=self.partition_id, topic_id=self.topic_id, leader=preferred
        )

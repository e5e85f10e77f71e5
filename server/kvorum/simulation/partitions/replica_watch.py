"""Looks at the replicas of a process after each change, and tells the ledger what changed."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.partition import Partition
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.simulation.partitions.ledger import PartitionLedger, Replica
from kvorum.simulation.partitions.places import Places
from kvorum.storage.topic_log.unified_log import UnifiedLog


class _State(NamedTuple):
    log: UnifiedLog
    start_offset: int
    end_offset: int
    high_watermark: int
    latest_epoch: int
    leader_epoch: int

    def is_of(self, partition: Partition) -> bool:
        """Return whether a partition is in this state still; this is asked after every turn."""
        log = partition.log
        return (
            log.stored_end_offset == self.end_offset
            and log.log_start_offset == self.start_offset
            and log.high_watermark == self.high_watermark
            and partition.leader_epoch == self.leader_epoch
            and log is self.log
        )


class ReplicaWatch:
    """The replicas of one process, as they were when they were last looked at."""

    def __init__(
        self,
        replicas: ReplicaManager,
        places: Places,
        ledger: PartitionLedger,
        wall_ms: Callable[[], int],
    ) -> None:
        """`wall_ms` returns the process's time of day."""
        self._replicas = replicas
        self._wall_ms = wall_ms
        self._places = places
        self._ledger = ledger
        self._states: dict[Partition, _State] = {}

    def look(self) -> None:
        """Compare each replica with what it was before the turn."""
        hosted = self._replicas.partitions
        for partition in [one for one in self._states if one not in hosted]:
            del self._states[partition]
        for partition in hosted:
            if partition not in self._states:
                # A process that ends within a turn has told others before what was committed.
                partition.watchers.add(partial(self._look_at, partition))
            self._look_at(partition)

    def _look_at(self, partition: Partition) -> None:
        log = partition.log
        if log.local_log.is_closed or log.local_log.poison.is_there:
            return
        known = self._states.get(partition)
        if known is not None and known.is_of(partition):
            return
        self._states[partition] = state = _state(partition, log)
        place = self._places.number(partition.topic_id, partition.topic_partition.partition)
        self._compare(partition, Replica(self._replicas.broker_id, place, log), known, state)

    def _compare(
        self, partition: Partition, replica: Replica, known: _State | None, state: _State
    ) -> None:
        ledger = self._ledger
        ledger.on_bounds(
            replica, is_leader=partition.is_leader, is_new=known is None, wall_ms=self._wall_ms()
        )
        if known is None:
            # A log that comes from the disk has not changed.
            known = state._replace(leader_epoch=NO_EPOCH)
        # A log that takes the place of another one has to be as long.
        ledger.counts["moved replicas"] += state.log is not known.log
        if partition.is_leader and state.leader_epoch > known.leader_epoch:
            # A broker that learns of two changes at once leads a new epoch without having followed.
            ledger.on_lead(replica, state.leader_epoch)
        if state.end_offset < known.end_offset:
            # An empty log goes back to the base of the leader's first batch, and loses nothing.
            if known.start_offset < known.end_offset:
                ledger.on_truncation(
                    replica, below=known.high_watermark, latest_epoch=known.latest_epoch
                )
        elif state.end_offset > known.end_offset:
            ledger.on_append(replica, known.end_offset, leader_epoch=state.leader_epoch)
        if partition.is_leader:
            ledger.on_high_watermark(replica, leader_epoch=state.leader_epoch)
        elif state.high_watermark > known.high_watermark:
            ledger.on_follower_high_watermark(replica, before=known.high_watermark)


def _state(partition: Partition, log: UnifiedLog) -> _State:
    epoch = NO_EPOCH if log.local_log.latest_epoch is None else log.local_log.latest_epoch
    return _State(
        log,
        log.log_start_offset,
        log.stored_end_offset,
        log.high_watermark,
        epoch,
        partition.leader_epoch,
    )

"""The replicas of one simulated broker: what `ReplicaManager` does, without tasks and threads.

Logs, partitions and fetchers are the real ones, on a simulated disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from kvorum.broker.fetcher.replica_fetcher import Key
from kvorum.broker.local_replica_changes import PartitionInfo, local_changes
from kvorum.broker.partition import Partition, PartitionContext
from kvorum.broker.partition_leader.partition_state import IsrProposal
from kvorum.broker.partition_stats import PartitionStats
from kvorum.broker.topic_log_configs import min_insync_replicas
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicsImage
from kvorum.node.broker.topic_configs import TopicConfigs
from kvorum.simulation.partitions.leader_fetcher import LeaderFetcher
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.settings import LAG_MAX_MS
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.topic_log.unified_log import UnifiedLog

ROOT: Final = Path("/logs")
DELETE_DELAY_MS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOwner:
    """What replicas need of their broker's process.

    `guard` makes a callback one of the process; `flush_later` has finished segments made durable.
    """

    broker_id: int
    broker_epoch: Callable[[], int]
    image: Callable[[], MetadataImage]
    alter_partition: Callable[[IsrProposal], None]
    guard: Callable[[Reply], Reply]
    flush_later: Callable[[UnifiedLog], None]


class Replicas:
    """The partitions that one process hosts; StorageErrors of the disk are its owner's."""

    def __init__(self, owner: ReplicaOwner, around: Surroundings, directory: LogDirectory) -> None:
        self._owner = owner
        self._around = around
        self._directory = directory
        self.partitions: dict[Key, Partition] = {}
        self._fetchers: dict[int, LeaderFetcher] = {}
        self._configs = TopicConfigs(owner.broker_id, {})
        self._seen = MetadataImage()
        self._context = PartitionContext(
            owner.broker_id,
            owner.broker_epoch,
            lambda: owner.image().cluster,
            owner.alter_partition,
            owner.flush_later,
            LAG_MAX_MS,
            PartitionStats(),
        )
        self.logs = LogManager(
            LogManagerSettings(delete_delay_ms=DELETE_DELAY_MS),
            config_of=lambda _: around.settings.log_config,
            random=around.random,
        )

    def startup(self, image: MetadataImage) -> None:
        """Load the logs of the partitions that the image has, and lead and follow as it says."""
        everything = local_changes(TopicsImage(), image.topics, self._owner.broker_id)
        hosted = {
            info.topic_partition: info.topic_id
            for info in (*everything.leaders, *everything.followers)
        }
        self.logs.startup([self._directory], hosted.get, now_ms=self._around.wall_ms())
        self.apply(image)

    def apply(self, image: MetadataImage) -> None:
        """Follow the changes from the last image to this one."""
        before, self._seen = self._seen, image
        changes = local_changes(before.topics, image.topics, self._owner.broker_id)
        for info in changes.deletes:
            self._delete(info)
        for info in changes.leaders:
            self._stop_fetching(info.key)
            partition = self._hosted(info)
            replica = Replica(self._owner.broker_id, info.key[1], partition.log)
            # A broker that reads two changes of the leader at once leads a new epoch without
            # having followed: the ledger hears of every epoch.
            self._around.ledger.on_lead(replica, info.registration.leader_epoch)
            values = self._configs.values(info.topic_partition.topic, image)
            partition.make_leader(
                info.registration,
                min_insync_replicas=min_insync_replicas(values),
                now_ms=self._around.now_ms,
            )
        for info in changes.followers:
            partition = self._hosted(info)
            if partition.make_follower(info.registration):
                self._stop_fetching(info.key)
                leader = info.registration.leader
                if leader in image.cluster.brokers:
                    self._fetcher(leader).add(partition)

    def _hosted(self, info: PartitionInfo) -> Partition:
        known = self.partitions.get(info.key)
        if known is not None:
            return known
        log = self.logs.get_or_create_log(
            info.topic_partition,
            info.topic_id,
            directory_id=info.registration.directory(self._owner.broker_id),
            now_ms=self._around.wall_ms(),
        )
        partition = Partition(info.topic_partition, info.topic_id, log, self._context)
        self.partitions[info.key] = partition
        partition.watch(partial(self._changed, partition))
        return partition

    def _changed(self, partition: Partition) -> None:
        if partition.is_leader:
            index = partition.topic_partition.partition
            replica = Replica(self._owner.broker_id, index, partition.log)
            self._around.ledger.on_high_watermark(replica, leader_epoch=partition.leader_epoch)

    def _delete(self, info: PartitionInfo) -> None:
        self._stop_fetching(info.key)
        partition = self.partitions.pop(info.key, None)
        if partition is not None:
            partition.close()
        self.logs.async_delete(info.topic_partition, now_ms=self._around.wall_ms())

    def _fetcher(self, leader_id: int) -> LeaderFetcher:
        if leader_id not in self._fetchers:
            self._fetchers[leader_id] = LeaderFetcher(
                (self._owner.broker_id, leader_id),
                self._around,
                broker_epoch=self._owner.broker_epoch,
                guard=self._owner.guard,
            )
        return self._fetchers[leader_id]

    def _stop_fetching(self, key: Key) -> None:
        for fetcher in self._fetchers.values():
            fetcher.remove(key)

    def fetch(self) -> None:
        """Let every fetcher send its next request."""
        for fetcher in tuple(self._fetchers.values()):
            fetcher.step()

    def shrink_isrs(self) -> None:
        """Look for followers that lag."""
        for partition in tuple(self.partitions.values()):
            partition.shrink_isr(self._around.now_ms)

    def flush(self) -> None:
        """Make every log durable, and store where they are, as time brings it about."""
        for partition in tuple(self.partitions.values()):
            partition.log.flush()

    def tidy(self) -> None:
        """Write the checkpoints, and remove what need not be kept."""
        self.logs.checkpoint_high_watermarks()
        self.logs.checkpoint_recovery_points()
        self.logs.delete_logs(now_ms=self._around.wall_ms())
        for partition in tuple(self.partitions.values()):
            partition.log.delete_old_segments(now_ms=self._around.wall_ms())
            partition.log.remove_marked(now_ms=self._around.wall_ms())

    def shutdown(self, *, broker_epoch: int) -> None:
        """Close every log in good order."""
        for partition in self.partitions.values():
            partition.close()
        self.logs.shutdown(broker_epoch=broker_epoch)

    def log(self, key: Key) -> UnifiedLog | None:
        """Return a partition's log; None where it cannot be read."""
        partition = self.partitions.get(key)
        if partition is None or partition.log.is_poisoned or partition.log.is_closed:
            return None
        return partition.log

"""Which fetcher has which partition (Kafka's ReplicaFetcherManager)."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.fetcher.follower_replica import PartitionReplica
from kvorum.broker.fetcher.partition_fetch_state import FetchedPartition
from kvorum.broker.fetcher.replica_fetcher import Key
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import FollowerQuota
from kvorum.metadata.java_hash import string_hash
from kvorum.node.broker.remote_leader_endpoint import RemoteLeaderEndpoint
from kvorum.node.broker.replica_fetcher_thread import ReplicaFetcherThread
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.storage.topic_partition import TopicPartition


class ReplicaFetcherSettings(NamedTuple):
    """How partitions are fetched, by how many fetchers for each leader, and over which listener."""

    fetcher: FetcherSettings
    fetcher_count: int
    listener: str
    socket_timeout_ms: int


class ReplicaFetcherManager:
    """The fetchers of a broker, by leader and number."""

    def __init__(
        self,
        broker: ThisBroker,
        settings: ReplicaFetcherSettings,
        outgoing: Outgoing,
        quota: FollowerQuota,
    ) -> None:
        self._broker = broker
        self._settings = settings
        self._outgoing = outgoing
        self._quota = quota
        self._threads: dict[tuple[int, int], ReplicaFetcherThread] = {}
        self._of_partition: dict[Key, tuple[int, int]] = {}

    @property
    def max_lag(self) -> int:
        """How many records the partition is behind that is furthest behind its leader."""
        return max((thread.max_lag for thread in self._threads.values()), default=0)

    @property
    def failed_partition_count(self) -> int:
        """How many partitions wait for another leader epoch after an error."""
        return sum(thread.failed_partition_count for thread in self._threads.values())

    def add_fetcher_for_partition(self, partition: Partition, leader_id: int) -> None:
        """Fetch a partition from its leader, in the leader epoch that the partition has."""
        topic_partition = partition.topic_partition
        fetcher_id = fetcher_id_of(topic_partition, self._settings.fetcher_count)
        place = leader_id, fetcher_id
        thread = self._threads.get(place)
        if thread is None:
            thread = self._threads[place] = self._new_thread(leader_id, fetcher_id)
        fetched = FetchedPartition(
            topic_partition.topic,
            partition.topic_id,
            topic_partition.partition,
            PartitionReplica(partition, self._broker.runtime.wall_ms),
        )
        self._of_partition[fetched.key] = place
        thread.add(fetched, partition.leader_epoch)

    def remove_fetcher_for_partition(self, key: Key) -> None:
        """Fetch a partition no longer, if it is fetched."""
        place = self._of_partition.pop(key, None)
        if place is not None:
            self._threads[place].remove(key)

    async def shutdown_idle_fetcher_threads(self) -> None:
        """End the fetchers that have no partition."""
        idle = [place for place, thread in self._threads.items() if thread.is_idle]
        for thread in [self._threads.pop(place) for place in idle]:
            await thread.close()

    async def shutdown(self) -> None:
        """End all fetchers."""
        threads, self._threads = list(self._threads.values()), {}
        self._of_partition = {}
        for thread in threads:
            await thread.close()

    def _new_thread(self, leader_id: int, fetcher_id: int) -> ReplicaFetcherThread:
        settings = self._settings
        leader = RemoteLeaderEndpoint(
            leader_id,
            listener=settings.listener,
            client_id=f"broker-{settings.fetcher.broker_id}-fetcher-{fetcher_id}",
            timeout_ms=settings.socket_timeout_ms,
            image=self._broker.image,
            outgoing=self._outgoing,
        )
        return ReplicaFetcherThread(self._broker, leader, settings.fetcher, self._quota)


def fetcher_id_of(topic_partition: TopicPartition, count: int) -> int:
    """Return the number of the fetcher that Kafka gives a partition."""
    number = (31 * string_hash(topic_partition.topic) + topic_partition.partition) & 0xFFFFFFFF
    # Kafka takes the absolute value of a signed number of 32 bits, 0 for the smallest one.
    signed = number - (1 << 32) if number >> 31 else number
    return (abs(signed) & 0x7FFFFFFF) % count

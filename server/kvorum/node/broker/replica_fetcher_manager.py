"""The fetchers of a broker, and the partitions of each (Kafka's ReplicaFetcherManager)."""

from collections.abc import Callable

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.fetcher.replica_fetcher import Key
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.metadata.java_hash import string_hash
from kvorum.node.broker.replica_fetcher_thread import LeaderEndpoint, ReplicaFetcherThread
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.storage.topic_partition import TopicPartition


class ReplicaFetcherManager:
    """The fetchers of a broker, by leader and number."""

    def __init__(
        self,
        broker: ThisBroker,
        settings: FetcherSettings,
        leader_endpoint: Callable[[int, int], LeaderEndpoint],
        quota: ReplicationQuotaManager,
        *,
        fetcher_count: int,
    ) -> None:
        """`leader_endpoint` returns the way to a leader, by its id, for the fetcher of a number.

        `fetcher_count` is how many fetchers there are for each leader (``num.replica.fetchers``).
        """
        self._broker = broker
        self._settings = settings
        self._leader_endpoint = leader_endpoint
        self._quota = quota
        self._fetcher_count = fetcher_count
        self._threads: dict[tuple[int, int], ReplicaFetcherThread] = {}
        self._of_partition: dict[Key, tuple[int, int]] = {}

    @property
    def max_lag(self) -> int:
        """The records by which the slowest partition is behind its leader."""
        return max((thread.fetcher.max_lag for thread in self._threads.values()), default=0)

    @property
    def failed_partition_count(self) -> int:
        """The number of partitions that wait for another leader epoch after an error."""
        return sum(len(thread.fetcher.failed) for thread in self._threads.values())

    def add_fetcher_for_partition(self, partition: Partition, leader_id: int) -> None:
        """Fetch a partition from its leader, in the leader epoch that the partition has."""
        topic_partition = partition.topic_partition
        fetcher_id = fetcher_id_of(topic_partition, self._fetcher_count)
        place = leader_id, fetcher_id
        thread = self._threads.get(place)
        if thread is None:
            thread = ReplicaFetcherThread(
                self._broker, self._leader_endpoint(*place), self._settings, self._quota
            )
            self._threads[place] = thread
        self._of_partition[partition.key] = place
        thread.add(partition, partition.leader_epoch)

    def remove_fetcher_for_partition(self, key: Key) -> None:
        """Fetch a partition no longer, if it is fetched."""
        place = self._of_partition.pop(key, None)
        if place is not None:
            self._threads[place].fetcher.remove(key)

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


def fetcher_id_of(topic_partition: TopicPartition, count: int) -> int:
    """Return the number of the fetcher that Kafka gives a partition."""
    number = (31 * string_hash(topic_partition.topic) + topic_partition.partition) & 0xFFFFFFFF
    # Kafka takes the absolute value of a signed number of 32 bits, 0 for the smallest one.
    signed = number - (1 << 32) if number >> 31 else number
    return (abs(signed) & 0x7FFFFFFF) % count

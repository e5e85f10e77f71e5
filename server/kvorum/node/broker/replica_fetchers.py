"""The fetchers of a broker: Kafka's ReplicaFetcherManager, ReplicaFetcherThread."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.fetcher.replica_fetcher import Key, OffsetSearch, ReplicaFetcher
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.metadata.java_hash import string_hash
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.coroutines import Signal
from kvorum.node.events.log_event import LogEvent
from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.errors import WireError
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

WRITES_WAIT_MS: Final = 10.0
"""The longest wait of a leader's partitions for those of them whose disk is slow."""
_log = logging.getLogger(__name__)


class LeaderEndpoint(Protocol):
    """The way to the leader that a fetcher asks (Kafka's LeaderEndPoint).

    What its methods return is awaited on the runtime, and raises ClientConnectionError if the
    leader does not answer.
    """

    @property
    def fetch_version(self) -> int:
        """The version of Fetch to use."""
        ...

    def connect(self) -> Awaitable[None]:
        """Connect unless there is a connection."""
        ...

    def fetch(self, request: FetchRequest, version: int) -> Awaitable[FetchResponse]:
        """Fetch, and return the response."""
        ...

    def list_offsets(self, request: ListOffsetsRequest) -> Awaitable[ListOffsetsResponse]:
        """Return offsets of the leader."""
        ...

    def abort(self) -> None:
        """Close the connection; a request that is under way fails."""
        ...

    def close(self) -> Awaitable[None]:
        """Close the connection, and return once it is closed."""
        ...


class ReplicaFetcherThread:
    """The partitions of one leader that one connection fetches; it runs until `close`."""

    def __init__(
        self,
        broker: ThisBroker,
        leader: LeaderEndpoint,
        settings: FetcherSettings,
        quota: ReplicationQuotaManager,
        *,
        leader_id: int,
        problems: dict[int, str],
    ) -> None:
        """Begin to fetch from one leader.

        `problems` has what is wrong with each leader; all fetchers of the broker share it.
        """
        self._leader_id = leader_id
        self._problems = problems
        self._broker = broker
        self._leader = leader
        self._settings = settings
        self.fetcher = ReplicaFetcher(settings, _report, broker.runtime.wall_ms, quota)
        self._has_more = Signal(broker.runtime)
        self._task = broker.run(self._run())

    @property
    def is_idle(self) -> bool:
        """Whether no partition is left to fetch or waits for another leader epoch."""
        return not self.fetcher.keys and not self.fetcher.failed

    def add(self, partition: Partition, leader_epoch: int) -> None:
        """Fetch a partition from the next request on."""
        self.fetcher.add(partition, leader_epoch)
        self._has_more.set()

    async def close(self) -> None:
        """End, wherever the task is."""
        self._task.close()
        await self._leader.close()

    async def _run(self) -> None:
        while True:
            await self._do_work()

    async def _do_work(self) -> None:
        """Fetch once, or wait until there is something to fetch."""
        if not self.fetcher.keys:
            await self._wait()
            return
        try:
            await self._leader.connect()
            await self._fetch()
        except (ClientConnectionError, WireError) as error:
            self._complain(str(error))
            self._leader.abort()
            self.fetcher.on_failure(self._now_ms())
            await self._wait()

    async def _fetch(self) -> None:
        await self._wait_for_writes()
        version = self._leader.fetch_version
        fetch = self.fetcher.fetch(
            self._now_ms(), version=version, broker_epoch=self._broker.epoch()
        )
        if fetch is None:
            await self._wait()
            return
        response = await self._leader.fetch(fetch.request, version)
        self._problems.pop(self._leader_id, None)
        states = self.fetcher.on_response(fetch, response, self._now_ms())
        search = OffsetSearch(states) if states else None
        while search is not None:
            offsets = await self._leader.list_offsets(search.request(self._settings.broker_id))
            search = search.on_response(self.fetcher, offsets, self._now_ms())

    async def _wait_for_writes(self) -> None:
        """Wait until slow disks have stored what was fetched, which mostly takes no millisecond.

        A partition whose log is not stored has no part in the next request, and none in the ones
        after it before that is answered.
        """
        end_ms = self._now_ms() + WRITES_WAIT_MS
        while not self.fetcher.is_stored:
            left_ms = end_ms - self._now_ms()
            if left_ms <= 0:
                return
            self._has_more.clear()
            self._set_when_stored()
            await self._has_more.wait(left_ms)

    async def _wait(self) -> None:
        """Wait until a delay is over, a partition is added, or a slow disk has stored a log."""
        now_ms = self._now_ms()
        delay_ms = max(self.fetcher.next_due_ms(now_ms) - now_ms, 0)
        self._has_more.clear()
        self._set_when_stored()
        await self._has_more.wait(delay_ms)

    def _set_when_stored(self) -> None:
        for writes in self.fetcher.writes_behind():
            writes.when_done(self._has_more.set)

    def _now_ms(self) -> float:
        return self._broker.runtime.monotonic_ms()

    def _complain(self, error: str) -> None:
        """Log a problem once, until the leader answers again or the problem is another one."""
        if self._problems.get(self._leader_id) == error:
            return
        self._problems[self._leader_id] = error
        _log.warning(
            LogEvent(
                "A leader cannot be fetched from",
                leader=self._leader_id,
                broker=self._broker.id,
                error=error,
            )
        )


def _report(partition: Partition, problem: str) -> None:
    _log.warning(
        LogEvent(
            "A replica has a problem",
            topic=partition.topic_partition.topic,
            partition=partition.topic_partition.partition,
            problem=problem,
        )
    )


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
        self._problems: dict[int, str] = {}
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
        place = leader_id, fetcher_id_of(partition.topic_partition, self._fetcher_count)
        thread = self._threads.get(place)
        if thread is None:
            thread = ReplicaFetcherThread(
                self._broker,
                self._leader_endpoint(*place),
                self._settings,
                self._quota,
                leader_id=leader_id,
                problems=self._problems,
            )
            self._threads[place] = thread
        self._of_partition[partition.key] = place
        thread.add(partition, partition.leader_epoch)

    def resize_thread_pool(self, fetcher_count: int) -> Sequence[Partition]:
        """Have so many fetchers for each leader; return the partitions that are to `migrate`."""
        if fetcher_count == self._fetcher_count:
            return ()
        _log.info(
            LogEvent(
                "The number of fetchers for each leader changes",
                before=self._fetcher_count,
                after=fetcher_count,
            )
        )
        self._fetcher_count = fetcher_count
        return [one for thread in self._threads.values() for one in thread.fetcher.partitions]

    def migrate(self, partition: Partition) -> None:
        """Have another fetcher go on with a partition whose log is not being truncated.

        One that is fetched no longer, or has failed, is left as it is.
        """
        key = partition.key
        place = self._of_partition.get(key)
        if place is None or not self._threads[place].fetcher.is_fetched(key):
            return
        leader_id, number = place
        if number != fetcher_id_of(partition.topic_partition, self._fetcher_count):
            self.remove_fetcher_for_partition(key)
            self.add_fetcher_for_partition(partition, leader_id)

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

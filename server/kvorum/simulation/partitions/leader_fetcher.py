"""The fetches of a broker from one leader, as a ReplicaFetcherThread makes them: one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.fetcher.follower_replica import PartitionReplica
from kvorum.broker.fetcher.out_of_range import OffsetSearch
from kvorum.broker.fetcher.partition_fetch_state import FetchedPartition
from kvorum.broker.fetcher.replica_fetcher import Fetch, Key, ReplicaFetcher
from kvorum.broker.partition import Partition
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsResponse
from kvorum.wire.primitives import Message

VERSION: Final = 18
BACKOFF_MS: Final = 30
FETCH_TIMEOUT_MS: Final = 120
FETCH_BYTES: Final = 1_200


class _Before(NamedTuple):
    """What a replica had before an answer."""

    end_offset: int
    high_watermark: int
    latest_epoch: int


class LeaderFetcher:
    """The real fetcher, whose requests and answers the simulated network carries.

    `guard` makes a callback one of the broker's process: nothing happens once that has ended.
    """

    def __init__(
        self,
        link: tuple[int, int],
        around: Surroundings,
        *,
        broker_epoch: Callable[[], int],
        guard: Callable[[Reply], Reply],
    ) -> None:
        self._broker_id, self._leader_id = link
        self._around = around
        self._broker_epoch = broker_epoch
        self._guard = guard
        self._partitions: dict[Key, Partition] = {}
        self._is_in_flight = False
        self.fetcher = ReplicaFetcher(
            FetcherSettings(self._broker_id, bytes_max=FETCH_BYTES, backoff_ms=BACKOFF_MS),
            self._on_problem,
        )

    def _on_problem(self, _: FetchedPartition, problem: str) -> None:
        self._around.ledger.counts[f"problem: {problem.split(' {', maxsplit=1)[0][:24]}"] += 1

    def add(self, partition: Partition) -> None:
        """Fetch a partition in its leader epoch."""
        name, topic_id = partition.topic_partition, partition.topic_id
        replica = PartitionReplica(partition, self._around.wall_ms)
        fetched = FetchedPartition(name.topic, topic_id, name.partition, replica)
        self._partitions[fetched.key] = partition
        self.fetcher.add(fetched, partition.leader_epoch)

    def remove(self, key: Key) -> None:
        """Fetch a partition no longer."""
        self._partitions.pop(key, None)
        self.fetcher.remove(key)

    def step(self) -> None:
        """Send the next fetch, unless one is under way."""
        if self._is_in_flight or not self.fetcher.keys:
            return
        before = self._before()
        fetch = self.fetcher.fetch(
            self._around.now_ms, version=VERSION, broker_epoch=self._broker_epoch()
        )
        self._check(before)
        if fetch is not None:
            self._ask(fetch.request, lambda answer: self._on_fetched(fetch, answer))

    def _ask(self, request: Message, on_answer: Reply) -> None:
        self._is_in_flight = True
        self._around.ask(
            self._broker_id,
            self._leader_id,
            request,
            self._guard(on_answer),
            timeout_ms=FETCH_TIMEOUT_MS,
        )

    def _on_fetched(self, fetch: Fetch, answer: Message | None) -> None:
        self._is_in_flight = False
        if not isinstance(answer, FetchResponse):
            self.fetcher.on_failure(self._around.now_ms)
            return
        before = self._before()
        states = self.fetcher.on_response(fetch, answer, self._around.now_ms)
        self._check(before)
        if states:
            self._search(OffsetSearch(states))

    def _search(self, search: OffsetSearch) -> None:
        self._ask(search.request(self._broker_id), lambda answer: self._on_found(search, answer))

    def _on_found(self, search: OffsetSearch, answer: Message | None) -> None:
        self._is_in_flight = False
        if not isinstance(answer, ListOffsetsResponse):
            self.fetcher.on_failure(self._around.now_ms)
            return
        before = self._before()
        following = search.on_response(self.fetcher, answer, self._around.now_ms)
        self._check(before)
        if following is not None:
            self._search(following)

    def _before(self) -> Mapping[Key, _Before]:
        return {
            key: _Before(
                partition.log.log_end_offset,
                partition.log.high_watermark,
                -1 if partition.log.latest_epoch is None else partition.log.latest_epoch,
            )
            for key, partition in self._partitions.items()
        }

    def _check(self, before: Mapping[Key, _Before]) -> None:
        ledger = self._around.ledger
        for key, known in before.items():
            log = self._partitions[key].log
            replica = Replica(self._broker_id, key[1], log)
            if log.log_end_offset < known.end_offset:
                ledger.on_truncation(
                    replica, below=known.high_watermark, latest_epoch=known.latest_epoch
                )
            elif log.log_end_offset > known.end_offset:
                ledger.on_append(replica, known.end_offset)
            if log.high_watermark > known.high_watermark:
                ledger.on_follower_high_watermark(replica, before=known.high_watermark)

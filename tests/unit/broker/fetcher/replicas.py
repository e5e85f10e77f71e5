"""Replicas of one partition on logs in memory, whose fetches are carried one at a time."""

from __future__ import annotations

from pathlib import Path

from tests.support.controller_under_test import RegisteredBroker, started_cluster
from tests.support.faulty_files import FaultyFiles
from tests.support.held_threads import HeldThreads
from tests.unit.storage.topic_logs import PARTITION, TOPIC_ID, flush, managed, sent, values_in

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.fetcher.replica_fetcher import EARLIEST, Fetch, OffsetSearch, ReplicaFetcher
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.isr_changes import IsrChanges
from kvorum.broker.partition_leader.leader import IsrProposal
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.partition_leader.replica_state import FollowerFetch
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.metadata.partition import PartitionRegistration
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.errors import OffsetOutOfRangeError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsResponse

ROOT = Path("/logs")
BACKOFF_MS = 1000
LAG_MAX_MS = 30_000.0
VERSION = 18
WALL_MS = 1_000_000
KEY = TOPIC_ID, 0


class Replica:
    """One broker's replica, as leader or as follower."""

    def __init__(self, world: Replicas, broker_id: int) -> None:
        self.id = broker_id
        self.world = world
        self.files = FaultyFiles()
        self.files.make_directory(ROOT)
        self.threads = HeldThreads(holds=False)
        """The threads that write once the disk is slow, which the test releases."""
        directory = LogDirectory(ROOT, bytes(16), self.files, was_clean=True)
        self.manager = managed([directory], threads=self.threads)
        log = self.manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=None, now_ms=WALL_MS)
        self.proposals: list[IsrProposal] = []
        self.topic_stats = BrokerTopicStats()
        self.isr_changes = IsrChanges(self.proposals.append)
        self.broker = RegisteredBroker(world.controller, broker_id)
        self.partition = Partition(
            PARTITION,
            TOPIC_ID,
            log,
            self.broker,
            flush_log=flush,
            lag_max_ms=LAG_MAX_MS,
            topic_stats=self.topic_stats,
            isr_changes=self.isr_changes,
        )
        self.problems: list[str] = []
        self.throttle(None)

    def throttle(self, quota: ReplicationQuotaManager | None) -> None:
        """Fetch within a quota, if any; before there is anything to fetch."""
        self.fetcher = ReplicaFetcher(
            FetcherSettings(self.id, backoff_ms=BACKOFF_MS),
            lambda _, problem: self.problems.append(problem),
            lambda: WALL_MS,
            quota,
        )

    @property
    def values(self) -> list[bytes | None]:
        return values_in(self.partition.log)

    @property
    def end_offset(self) -> int:
        return self.partition.log.log_end_offset

    def write(self, *values: bytes) -> None:
        for value in values:
            self.partition.append_records_to_leader(
                sent(value), required_acks=1, wall_ms=WALL_MS, now_ms=self.world.now_ms
            )

    def write_slowly(self, *values: bytes) -> None:
        """Write from now on by threads, which the test releases."""
        self.threads.slow_down(lambda: self.write(*values))

    def ask(self) -> Fetch:
        fetch = self.fetcher.fetch(
            self.world.now_ms, version=VERSION, broker_epoch=self.broker.epoch()
        )
        assert fetch is not None
        return fetch

    def serve(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        (wish,) = topic.partitions
        data = FetchResponse.PartitionData(0, high_watermark=-1, records=b"")
        fetch = FollowerFetch(
            broker_id=request.replica_state.replica_id,
            broker_epoch=request.replica_state.replica_epoch,
            leader_epoch=wish.current_leader_epoch,
            offset=wish.fetch_offset,
            log_start_offset=wish.log_start_offset,
        )
        try:
            read = self.partition.fetch_records_of_follower(
                fetch,
                wish.partition_max_bytes,
                last_fetched_epoch=wish.last_fetched_epoch,
                now_ms=self.world.now_ms,
            )
        except LeaderRefusesError as refusal:
            data.error_code = refusal.code
        except OffsetOutOfRangeError:
            data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            data.high_watermark = read.high_watermark
            data.log_start_offset = read.log_start_offset
            data.records = bytes(read.records)
            if read.diverging is not None:
                data.diverging_epoch = FetchResponse.EpochEndOffset(*read.diverging)
        answered = FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
        return FetchResponse(responses=[answered])

    def take(self, fetch: Fetch, response: FetchResponse, leader: Replica) -> None:
        """Take in a response, and ask for the leader's offsets where that is needed."""
        states = self.fetcher.on_response(fetch, response, self.world.now_ms)
        search = OffsetSearch(states) if states else None
        while search is not None:
            log = leader.partition.log.local_log
            is_start = search.timestamp == EARLIEST
            found = ListOffsetsResponse.ListOffsetsPartitionResponse(
                0, offset=log.log_start_offset if is_start else log.log_end_offset
            )
            topic = ListOffsetsResponse.ListOffsetsTopicResponse(PARTITION.topic, [found])
            search = search.on_response(
                self.fetcher, ListOffsetsResponse(topics=[topic]), self.world.now_ms
            )

    def fetch_from(self, leader: Replica) -> None:
        fetch = self.ask()
        self.take(fetch, leader.serve(fetch.request), leader)


class Replicas:
    """Replicas 1, 2 and 3 of a partition, and the states that the controller gives it."""

    def __init__(self) -> None:
        self.controller = started_cluster()
        self.now_ms = 10_000.0
        self.leader_epoch = -1
        self.partition_epoch = 0
        self.all = {broker_id: Replica(self, broker_id) for broker_id in (1, 2, 3)}

    def lead(
        self, leader_id: int, *, isr: tuple[int, ...] = (1, 2, 3), known_by: str = "123"
    ) -> None:
        """Begin a leader epoch; replicas that are not in `known_by` hear of it later, or never."""
        self.leader_epoch += 1
        self.alter(leader_id, isr=isr, known_by=known_by)

    def alter(self, leader_id: int, *, isr: tuple[int, ...], known_by: str = "123") -> None:
        """Give the partition another state in the same leader epoch."""
        self.partition_epoch += 1
        registration = PartitionRegistration(
            replicas=(1, 2, 3),
            directories=(bytes(16),) * 3,
            isr=isr,
            leader=leader_id,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
        )
        for replica in self.all.values():
            if str(replica.id) not in known_by:
                continue
            if replica.id == leader_id:
                replica.fetcher.remove(KEY)
                replica.partition.make_leader(
                    registration, min_insync_replicas=2, now_ms=self.now_ms
                )
            elif replica.partition.make_follower(registration):
                replica.fetcher.remove(KEY)
                replica.fetcher.add(replica.partition, self.leader_epoch)

    def copy(self, leader_id: int, *followers: int) -> None:
        """Let followers fetch until they have everything and know that it is committed."""
        for _ in range(3):
            for follower in followers:
                self.all[follower].fetch_from(self.all[leader_id])

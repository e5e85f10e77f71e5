"""A group coordinator over partitions in memory, whose leadership and followers a test controls."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast

from immutables import Map
from tests.support.controller_under_test import RegisteredBroker, started_cluster
from tests.support.faulty_files import FaultyFiles
from tests.support.waiting import PATIENCE_S, wait_for_event
from tests.unit.storage.topic_logs import flush, managed

from kvorum.broker.broker_topic_stats import PartitionStats
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.leader import IsrProposal
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.groups.records import GroupKey, decode_record
from kvorum.groups.request_context import RequestContext
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.transaction_verification import TransactionalProducer, VerifiedPartitions
from kvorum.node.config import GroupSettings, OffsetsTopicSettings
from kvorum.node.event_loop import AsyncioRuntime, SystemClock
from kvorum.node.handlers.group_requests import asked
from kvorum.node.handlers.txn_offset_commit import verified_transaction
from kvorum.node.services import BrokerServices
from kvorum.node.tasks import awaiting, run
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kvorum.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kvorum.wire.records import Compression, RecordBatch, read_batches
from kvorum.wire.uuid_text import ZERO_UUID

Response = TypeVar("Response")
Arguments = TypeVarTuple("Arguments")
OFFSETS: Final = "__consumer_offsets"
OFFSETS_ID: Final = b"offsets-topic-id"
TOPIC: Final = "t"
TOPIC_ID: Final = b"the-topic-called"
ME: Final = 1
FOLLOWER: Final = 2
DIRECTORY: Final = b"d" * 16
SETTINGS: Final = GroupSettings(
    coordinator=GroupCoordinatorSettings(group_initial_rebalance_delay_ms=0),
    session_timeout_ms_min=1,
    session_timeout_ms_max=60_000,
    commit_timeout_ms=10_000,
    topic=OffsetsTopicSettings(1, 1, 1 << 20, Compression.NONE),
)
LAG_MAX_MS: Final = 30_000
CONTEXT: Final = RequestContext(8, "client", "/127.0.0.1")


class Verification:
    """Answers for the coordinator of transactions: `error` for every partition, else a guard."""

    is_coordinated = True

    def __init__(self) -> None:
        self.error: ErrorCode | None = None
        self.asked: list[TransactionalProducer] = []
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def verify(
        self, producer: TransactionalProducer, sequences: Mapping[Partition, int]
    ) -> VerifiedPartitions:
        self.asked.append(producer)
        verified = VerifiedPartitions(must_be_verified=True)
        for partition, sequence in sequences.items():
            try:
                guard = partition.maybe_start_transaction_verification(
                    producer.producer_id,
                    sequence=sequence,
                    epoch=producer.producer_epoch,
                    supports_epoch_bump=producer.operation.supports_epoch_bump,
                    wall_ms=0,
                )
            except ProducerError as error:
                verified.errors[partition.topic_partition] = error.code
                continue
            if guard is not None:
                verified.guards[partition.topic_partition] = guard
            if self.error is not None:
                verified.errors[partition.topic_partition] = self.error
        await awaiting(self.goes_on.wait)
        return verified


@dataclass
class Coordinated:
    """Broker 1 leads the partitions of the topic; broker 2 follows, and never fetches."""

    settings: GroupSettings = SETTINGS
    partition_count: int = 1
    image: MetadataImage = field(default_factory=MetadataImage)
    transactions: Verification = field(default_factory=Verification)

    def __post_init__(self) -> None:
        self.runtime = AsyncioRuntime(SystemClock(), thread_name="groups")
        files = FaultyFiles()
        files.make_directory(Path("/d"))
        self.logs = managed([LogDirectory(Path("/d"), DIRECTORY, files, was_clean=True)])
        self.proposals: list[IsrProposal] = []
        self.broker = RegisteredBroker(started_cluster(), ME)
        self.partitions = [self._partition(index) for index in range(self.partition_count)]
        self.registration = PartitionRegistration(
            (ME, FOLLOWER), (DIRECTORY, DIRECTORY), (ME,), leader=ME
        )
        self.service = GroupCoordinatorService(
            self.settings,
            cast("ReplicaManager", self),
            broker_id=ME,
            runtime=self.runtime,
            random=Random(1),
        )

    def _partition(self, index: int) -> Partition:
        where = TopicPartition(OFFSETS, index)
        return Partition(
            where,
            OFFSETS_ID,
            self.logs.get_or_create_log(where, OFFSETS_ID, directory_id=None, now_ms=0),
            self.broker,
            alter_partition=self.proposals.append,
            flush_log=flush,
            lag_max_ms=LAG_MAX_MS,
            stats=PartitionStats(),
        )

    # The replica manager, as the service uses it.

    def partition(self, topic_id: bytes, index: int) -> Partition | None:
        assert topic_id == OFFSETS_ID
        return self.partitions[index]

    # The actions of a test.

    async def asked(
        self,
        method: Callable[[Unpack[Arguments], Callable[[Response | RequestError], None]], None],
        *arguments: *Arguments,
    ) -> Response:
        return await run(asked(self.runtime, method, *arguments))

    @property
    def log(self) -> UnifiedLog:
        return self.partitions[0].log

    def register(self, **changes: Any) -> None:
        """Change leader, epochs or ISR of all partitions, and publish that."""
        epoch = self.registration.partition_epoch + 1
        self.registration = self.registration._replace(partition_epoch=epoch, **changes)
        for partition in self.partitions:
            if self.registration.leader == ME:
                partition.make_leader(self.registration, min_insync_replicas=1, now_ms=0)
            else:
                partition.make_follower(self.registration)
        registrations = Partitions((self.registration,) * self.partition_count)
        self.publish(TopicImage(OFFSETS, OFFSETS_ID, registrations))

    def publish(self, *added: TopicImage, without: str | None = None) -> None:
        """Publish an image with topics added or replaced, or without one."""
        before = self.image
        topics = {**before.topics.by_id, **{topic.id: topic for topic in added}}
        kept = {topic_id: topic for topic_id, topic in topics.items() if topic.name != without}
        names = {topic.name: topic.id for topic in kept.values()}
        self.image = replace(before, topics=TopicsImage(Map(kept), Map(names)))
        self.service.on_image(before, self.image)

    async def lead(self) -> None:
        """Lead with epoch 0, and wait until the groups are loaded."""
        self.register(leader_epoch=0)
        await self.loaded()

    async def loaded(self) -> None:
        """Wait until the groups are loaded, which no callback reports."""
        async with asyncio.timeout(PATIENCE_S):
            while self.code_of_listing() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # noqa: ASYNC110 - see above
                await asyncio.sleep(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a record makes `condition` true."""
        changed = asyncio.Event()
        self.partitions[0].watch(changed.set)
        await wait_for_event(changed, condition, "a record makes it so", otherwise=self.records)

    def code_of_listing(self) -> ErrorCode:
        try:
            self.service.list_groups([], [])
        except RequestError as error:
            return error.code
        return ErrorCode.NONE

    def hold(self) -> None:
        """Let the high watermark wait for the follower from here on."""
        self.register(isr=(ME, FOLLOWER))

    def release(self) -> None:
        """Let the high watermark move to the end."""
        self.register(isr=(ME,))

    def lose(self, leader_epoch: int = 1) -> None:
        self.register(leader=FOLLOWER, leader_epoch=leader_epoch)

    def states(self) -> Mapping[str, str]:
        return {one.group_id: one.group_state for one in self.service.list_groups([], [])}

    def records(self) -> list[tuple[GroupKey, bool]]:
        """Return the key of each record of classic groups, and whether it is a tombstone."""
        found: list[tuple[GroupKey, bool]] = []
        for batch in self.batches():
            for record in batch.records():
                assert record.key is not None
                decoded = decode_record(record.key, record.value)
                if decoded is None:
                    continue
                assert isinstance(decoded.key, GroupKey)
                found.append((decoded.key, decoded.value is None))
        return found

    def batches(self) -> list[RecordBatch]:
        found: list[RecordBatch] = []
        offset, end = self.log.local_log.log_start_offset, self.log.local_log.log_end_offset
        while offset < end:
            found += read_batches(self.log.local_log.read(offset, 1 << 20, end_offset=end))
            offset = found[-1].next_offset
        return found

    async def commit(self, offset: int, *, group: str = "g", partition: int = 0) -> ErrorCode:
        """Commit an offset as an operator would, without a member."""
        wish = OffsetCommitRequestTopic(
            TOPIC, TOPIC_ID, [OffsetCommitRequestPartition(partition, offset)]
        )
        request = OffsetCommitRequest(group, topics=[wish])
        return await code_of(self.asked(self.service.commit_offsets, CONTEXT, request))

    async def commit_in_transaction(
        self, offset: int, *, epoch: int = 0, version: int = 5, metadata: str = ""
    ) -> ErrorCode:
        """Commit an offset of group g in a transaction of producer 7."""
        wish = TxnOffsetCommitRequestTopic(
            TOPIC, partitions=[TxnOffsetCommitRequestPartition(0, offset, -1, metadata)]
        )
        request = TxnOffsetCommitRequest("mine", "g", 7, epoch, topics=[wish])
        services = cast(
            "BrokerServices", SimpleNamespace(groups=self.service, transactions=self.transactions)
        )
        try:
            transaction = await run(verified_transaction(request, version, services))
            context = RequestContext(version)
            commit = self.service.commit_transactional_offsets
            response = await self.asked(commit, context, request, transaction)
        except RequestError as error:
            return error.code
        return ErrorCode(response.topics[0].partitions[0].error_code)

    async def end_transaction(
        self,
        *,
        is_commit: bool = True,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        transaction_version: int = 1,
    ) -> ErrorCode:
        """Write a marker of producer 7 to the first partition."""
        marker = TransactionMarker(7, epoch, coordinator_epoch, is_commit, transaction_version)
        return await code_of(self.asked(self.service.complete_transaction, 0, marker))

    async def offset(self, *, group: str = "g", is_stable: bool = False) -> int:
        wish = OffsetFetchRequestTopics(TOPIC, ZERO_UUID, [0])
        request = OffsetFetchRequestGroup(group, topics=[wish])
        found = (
            await self.asked(self.service.fetch_stable_offsets, request)
            if is_stable
            else self.service.fetch_offsets(request)
        )
        return found.topics[0].partitions[0].committed_offset

    async def join(
        self, *, session_ms: int = 30_000, client_id: str = CONTEXT.client_id
    ) -> JoinGroupResponse:
        """Join as a member of its own, as clients of old do, at once."""
        request = JoinGroupRequest(
            "g",
            session_ms,
            session_ms,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"")],
        )
        context = replace(CONTEXT, version=3, client_id=client_id)
        return await self.asked(self.service.join_group, context, request)


async def code_of(operation: Coroutine[Any, Any, Any]) -> ErrorCode:
    try:
        await operation
    except RequestError as error:
        return error.code
    return ErrorCode.NONE

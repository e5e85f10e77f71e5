"""A group coordinator over partitions in memory, whose leadership and followers a test controls."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast

from tests.support.waiting import PATIENCE_S, wait_for_event
from tests.unit.node.led_partitions import ME, LedPartitions

from kvorum.broker.partition import Partition
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.groups.records import decode_record
from kvorum.groups.request_context import RequestContext
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.transaction_verification import TransactionalProducer, VerifiedPartitions
from kvorum.node.clock import SystemClock
from kvorum.node.config import GroupSettings, OffsetsTopicSettings
from kvorum.node.handlers.group_requests import asked
from kvorum.node.handlers.txn_offset_commit import verified_transaction
from kvorum.node.services import BrokerServices
from kvorum.node.tasks import awaiting, run
from kvorum.storage.log.producer_state import ProducerError
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
from kvorum.wire.primitives import Message
from kvorum.wire.records import Compression
from kvorum.wire.uuid_text import ZERO_UUID

Response = TypeVar("Response")
Arguments = TypeVarTuple("Arguments")
OFFSETS: Final = "__consumer_offsets"
OFFSETS_ID: Final = b"offsets-topic-id"
TOPIC: Final = "t"
TOPIC_ID: Final = b"the-topic-called"
SETTINGS: Final = GroupSettings(
    coordinator=GroupCoordinatorSettings(group_initial_rebalance_delay_ms=0),
    session_timeout_ms_min=1,
    session_timeout_ms_max=60_000,
    commit_timeout_ms=10_000,
    append_linger_ms=-1,
    topic=OffsetsTopicSettings(1, 1, 1 << 20, Compression.NONE),
)
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


class Coordinated(LedPartitions):
    """Groups on the partitions of ``__consumer_offsets``."""

    def __init__(self, settings: GroupSettings = SETTINGS, partition_count: int = 1) -> None:
        super().__init__(OFFSETS, OFFSETS_ID, partition_count)
        self.transactions = Verification()
        self.runtime = AsyncioRuntime(SystemClock(), thread_name="groups")
        self.service = GroupCoordinatorService(
            settings,
            cast("ReplicaManager", self),
            broker_id=ME,
            runtime=self.runtime,
            random=Random(1),
        )

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        self.service.on_image(before, after)

    # The actions of a test.

    async def asked(
        self,
        method: Callable[[Unpack[Arguments], Callable[[Response | RequestError], None]], None],
        *arguments: *Arguments,
    ) -> Response:
        return await run(asked(self.runtime, method, *arguments))

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
        self.partitions[0].watchers.add(changed.set)
        await wait_for_event(changed, condition, "a record makes it so", otherwise=self.records)

    def code_of_listing(self) -> ErrorCode:
        try:
            self.service.list_groups([], [])
        except RequestError as error:
            return error.code
        return ErrorCode.NONE

    def states(self) -> Mapping[str, str]:
        return {one.group_id: one.group_state for one in self.service.list_groups([], [])}

    def records(self) -> list[tuple[Message, bool]]:
        """Return the key of each record of groups, and whether it is a tombstone."""
        found: list[tuple[Message, bool]] = []
        for batch in self.batches():
            for record in batch.records():
                assert record.key is not None
                decoded = decode_record(record.key, record.value)
                if decoded is None:
                    continue
                found.append((decoded.key, decoded.value is None))
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

"""A leader of one partition, members of a share group, and a keeper of their state in memory."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from immutables import Map
from tests.unit.broker.fetcher.replicas import KEY, WALL_MS, Replica, Replicas
from tests.unit.storage.topic_logs import batch_of

from kvorum.broker.dead_letter_queue.dead_letter_queue_error import DeadLetterQueueError
from kvorum.broker.dead_letter_queue.dead_letter_records import DeadLetterWriter
from kvorum.broker.partition import Partition
from kvorum.broker.share_group_config import ShareFetchSettings
from kvorum.broker.share_group_config_provider import ShareGroupConfigProvider
from kvorum.broker.share_partition.acknowledgement import AcknowledgeType, ShareAcknowledgementBatch
from kvorum.broker.share_partition.acquisition import ShareAcquireMode, ShareAcquirer
from kvorum.broker.share_partition.state_write import DeadLetterCause
from kvorum.broker.share_session.session import ShareSessionKey
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.features import SHARE_VERSION_FEATURE, FeaturesImage
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.dead_letter_queue.dead_letter_metrics import DeadLetterMetrics
from kvorum.node.broker.purgatories import DelayedOperationPurgatory
from kvorum.node.broker.share_fetch.share_fetch import AcknowledgeResult, ShareFetch
from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager
from kvorum.node.coroutines import Promise, Task, Wait
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.share_fetch import ShareFetchResponse
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from kvorum.wire.records import RecordData

GROUP = "orders"
PARTITION = TopicIdPartition(*KEY, "topic")
LOCK_MS = 30_000
ALICE, BOB = (ShareSessionKey(GROUP, name) for name in ("alice", "bob"))


@dataclass
class KeeperInMemory:
    """Keeps the state of one share partition; answers when the test lets it."""

    runtime: SimulatedRuntime
    is_held: bool = False
    read_error: ErrorCode = ErrorCode.NONE
    write_error: ErrorCode = ErrorCode.NONE
    start_offset: int = 0
    leader_epoch: int = 0
    """The highest leader epoch in which the state was read or written."""
    written: list[WriteShareGroupStateRequest.PartitionData] = field(
        default_factory=list[WriteShareGroupStateRequest.PartitionData]
    )
    waiting: list[Promise[None]] = field(default_factory=list[Promise[None]])

    @property
    def batches(self) -> list[tuple[int, int, int, int]]:
        """First and last offset, state and deliveries of all that was written, in order."""
        return [
            (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for data in self.written
            for batch in data.state_batches
        ]

    def release(self) -> None:
        """Answer all that waits, and from now on at once."""
        self.is_held = False
        for promise in self.waiting:
            promise.settle(None)
        self.waiting.clear()

    async def read_state(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        await self._turn()
        (topic,) = request.topics
        self.leader_epoch = max(self.leader_epoch, topic.partitions[0].leader_epoch)
        result = ReadShareGroupStateResponse.PartitionResult(
            0, error_code=self.read_error, start_offset=self.start_offset
        )
        for offset, (state, count) in sorted(self._states().items()):
            result.state_batches.append(
                ReadShareGroupStateResponse.StateBatch(offset, offset, state, count)
            )
        read = ReadShareGroupStateResponse.ReadStateResult(topic.topic_id, [result])
        return ReadShareGroupStateResponse([read])

    async def write_state(
        self, request: WriteShareGroupStateRequest
    ) -> WriteShareGroupStateResponse:
        await self._turn()
        (topic,) = request.topics
        error = self.write_error
        if topic.partitions[0].leader_epoch < self.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        if error is ErrorCode.NONE:
            self.written += topic.partitions
            self.start_offset = topic.partitions[-1].start_offset
        result = WriteShareGroupStateResponse.PartitionResult(0, error_code=error)
        written = WriteShareGroupStateResponse.WriteStateResult(topic.topic_id, [result])
        return WriteShareGroupStateResponse([written])

    def _states(self) -> dict[int, tuple[int, int]]:
        states: dict[int, tuple[int, int]] = {}
        for first, last, state, count in self.batches:
            states |= dict.fromkeys(range(first, last + 1), (state, count))
        return {offset: one for offset, one in states.items() if offset >= self.start_offset}

    async def _turn(self) -> None:
        if self.is_held:
            promise: Promise[None] = Promise(self.runtime)
            self.waiting.append(promise)
            await promise.result()


@dataclass
class Acquired:
    """The answer to a fetch, for its one partition."""

    data: ShareFetchResponse.PartitionData

    @property
    def offsets(self) -> list[int]:
        """The offsets that were acquired."""
        return [
            offset
            for batch in self.data.acquired_records
            for offset in range(batch.first_offset, batch.last_offset + 1)
        ]

    @property
    def delivery_counts(self) -> set[int]:
        """The deliveries of what was acquired, this one included."""
        return {batch.delivery_count for batch in self.data.acquired_records}

    @property
    def records(self) -> bytes:
        return bytes(self.data.records or b"")

    @property
    def code(self) -> ErrorCode:
        return ErrorCode(self.data.error_code)


@dataclass
class DeadLetters:
    """A dead-letter queue that keeps the offsets; it answers when the test lets it."""

    runtime: SimulatedRuntime
    problem: str | None = None
    is_held: bool = False
    asked: list[tuple[int, int, int, DeadLetterCause]] = field(
        default_factory=list[tuple[int, int, int, DeadLetterCause]]
    )
    """First and last offset, deliveries, and the cause."""
    waiting: list[Promise[None]] = field(default_factory=list[Promise[None]])
    metrics: dict[str, DeadLetterMetrics] = field(default_factory=dict[str, DeadLetterMetrics])

    async def enqueue(self, writer: DeadLetterWriter, _: Partition) -> None:
        self.asked.append(writer.letter[:4])
        if self.is_held:
            promise: Promise[None] = Promise(self.runtime)
            self.waiting.append(promise)
            await promise.result()
        if self.problem is not None:
            raise DeadLetterQueueError(self.problem)

    def release(self) -> None:
        """Answer all that waits."""
        for promise in self.waiting:
            promise.settle(None)
        self.waiting.clear()

    def close(self) -> None:
        pass


class _OneReplica:
    """The partitions of a broker that has one."""

    def __init__(self, replica: Replica, runtime: SimulatedRuntime) -> None:
        self.replica = replica
        self.disk_threads = runtime
        self.topic_stats = replica.topic_stats

    def partition(self, topic_id: bytes, index: int) -> object:
        return self.replica.partition if (topic_id, index) == KEY else None


class ShareWorld:
    """Broker 1 leads; what it appends is committed when `commit` is called."""

    def __init__(self) -> None:
        self.events = Events()
        self.random = Random(1)
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), self.random, turn=lambda callback: callback()
        )
        self.replicas = Replicas()
        self.replicas.lead(1)
        self.leader = self.replicas.all[1]
        self.keeper = KeeperInMemory(self.runtime)
        self.image = MetadataImage()
        self.dead_letters = DeadLetters(self.runtime)
        self.purgatory = DelayedOperationPurgatory(self.runtime)
        self.manager = self.new_manager()

    def new_manager(self, *, record_locks_max: int = 2000) -> SharePartitionManager:
        """Begin with nothing in memory, as another leader does."""
        self.manager = SharePartitionManager(
            ShareGroupConfigProvider(
                ShareFetchSettings(
                    record_lock_duration_ms=LOCK_MS, record_locks_max=record_locks_max
                ),
                lambda: self.image,
            ),
            cast("Any", _OneReplica(self.leader, self.runtime)),
            cast("Any", self.keeper),
            BatchInspector(self.runtime),
            self.purgatory,
            dead_letter_queue=cast("Any", self.dead_letters),
            runtime=self.runtime,
            random=self.random,
        )
        return self.manager

    def name_dead_letter_queue(self) -> None:
        """Have the group name a dead-letter queue, in a cluster that has them."""
        named = Map({"errors.deadletterqueue.topic.name": "dlq.orders"})
        self.image = MetadataImage(
            configs=ConfigsImage(Map({(int(ResourceType.GROUP), GROUP): named})),
            features=FeaturesImage(levels=Map({SHARE_VERSION_FEATURE: 2})),
        )

    def begin_groups_at(self, reset: str) -> None:
        """Have groups without a state begin where a value of ``share.auto.offset.reset`` says."""
        reset_of_group = Map({"share.auto.offset.reset": reset})
        self.image = MetadataImage(
            configs=ConfigsImage(Map({(int(ResourceType.GROUP), GROUP): reset_of_group}))
        )

    def write(self, *values: bytes) -> None:
        """Append records, each as a batch, and commit them."""
        self.leader.write(*values)
        self.replicas.copy(1, 2, 3)

    def write_together(self, *values: bytes) -> None:
        """Append records as one batch, and commit them."""
        batch = batch_of(*(RecordData(value, None, WALL_MS) for value in values))
        self.leader.partition.append_records_to_leader(
            batch, required_acks=1, wall_ms=WALL_MS, now_ms=self.replicas.now_ms
        )
        self.replicas.copy(1, 2, 3)

    def run(self, for_ms: float = 0.0) -> None:
        """Let time pass."""
        self.events.run_until(self.events.now_ms + for_ms)

    def begin(self, work: Coroutine[Wait[Any], Any, Any]) -> list[Any]:
        """Run a coroutine as far as it goes; its result is in the list once there is one."""
        results: list[Any] = []
        Task(work, results.append)
        self.run()
        return results

    def fetching(
        self,
        member: ShareSessionKey = ALICE,
        *,
        partitions: Sequence[TopicIdPartition] = (PARTITION,),
        max_wait_ms: int = 0,
        max_records: int = 100,
        min_bytes: int = 1,
        mode: ShareAcquireMode = ShareAcquireMode.RECORD_LIMIT,
    ) -> list[Any]:
        """Begin a fetch; the list has its result once there is one."""
        fetch = ShareFetch(
            group_id=member.group_id,
            acquirer=ShareAcquirer(member.member_id, mode, 100),
            partitions=partitions,
            max_records=max_records,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=1_000_000,
            isolation=self.manager.configs.config(member.group_id).isolation,
        )
        return self.begin(self.manager.fetch(fetch))

    def fetch(self, member: ShareSessionKey = ALICE, *, max_records: int = 100) -> Acquired:
        """Fetch without a wait for records."""
        results = self.fetching(member, max_records=max_records, max_wait_ms=1)
        self.run(for_ms=20)
        return answered(results)

    def acknowledging(
        self,
        first_offset: int,
        last_offset: int,
        *,
        member: ShareSessionKey = ALICE,
        kind: AcknowledgeType = AcknowledgeType.ACCEPT,
    ) -> list[Any]:
        """Begin to acknowledge; the list has the result once it is written."""
        batch = ShareAcknowledgementBatch(first_offset, last_offset, [kind])
        return self.begin(self.manager.acknowledge(member, {PARTITION: [batch]}))


def answered(results: list[Any]) -> Acquired:
    """Return the one partition of an answer that is there, an empty one where it has none."""
    (read,) = results
    if isinstance(read, Exception):
        raise read
    parts = [one.data for one in read]
    return Acquired(parts[0] if parts else ShareFetchResponse.PartitionData(records=b""))


def acknowledged(results: list[Any]) -> AcknowledgeResult:
    """Return what became of the acknowledgement of the one partition."""
    (by_partition,) = results
    return cast("AcknowledgeResult", by_partition[PARTITION])


def is_never_at_hand(*_: object, **__: object) -> bool:
    """Stand for a log whose records have to be read from the disk."""
    return False

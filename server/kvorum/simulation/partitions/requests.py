"""The requests that a simulated broker answers, by the real partitions."""

from __future__ import annotations

from collections.abc import Callable

from kvorum.broker.fetcher.out_of_range import EARLIEST
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.errors import LeaderRefusesError
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.simulation.partitions.fetch_handler import FetchHandler
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.produce_handler import ProduceHandler
from kvorum.simulation.partitions.settings import TOPIC, TOPIC_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResponseDeleteRecordsPartitionResult,
    DeleteRecordsResponseDeleteRecordsTopicResult,
)
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from kvorum.wire.messages.produce import ProduceRequest
from kvorum.wire.primitives import Message


class RequestHandler:
    """Answers of one process; `guard` makes a callback one of the process."""

    def __init__(
        self,
        replicas: ReplicaManager,
        around: Surroundings,
        guard: Callable[[Callable[[], None]], Callable[[], None]],
    ) -> None:
        self._replicas = replicas
        self._around = around
        self._fetches = FetchHandler(replicas, around, guard)
        self._writes = ProduceHandler(replicas, around, guard)

    def handle(self, request: Message, reply: Reply) -> None:
        """Answer one request, now or later."""
        match request:
            case FetchRequest():
                self._fetches.handle(request, reply)
            case ProduceRequest():
                self._writes.handle(request, reply)
            case ListOffsetsRequest():
                reply(self._list_offsets(request))
            case DeleteRecordsRequest():
                reply(self._delete_records(request))
            case _:
                raise TypeError(f"nobody sends {type(request).__name__} to a broker")

    def _led(self, index: int) -> Partition:
        """Return a partition that this broker leads; raises LeaderRefusesError."""
        partition = self._replicas.partition(TOPIC_ID, index)
        if partition is None:
            raise LeaderRefusesError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition.demand_leader()
        return partition

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        answers: list[ListOffsetsResponseListOffsetsPartitionResponse] = []
        for wish in (wish for topic in request.topics for wish in topic.partitions):
            answer = ListOffsetsResponseListOffsetsPartitionResponse(wish.partition_index)
            try:
                partition = self._led(wish.partition_index)
                partition.check_current_leader_epoch(wish.current_leader_epoch)
                is_start = wish.timestamp == EARLIEST
                log = partition.log
                answer.offset = log.log_start_offset if is_start else log.log_end_offset
            except LeaderRefusesError as refusal:
                answer.error_code = refusal.code
            answers.append(answer)
        return ListOffsetsResponse(
            topics=[ListOffsetsResponseListOffsetsTopicResponse(TOPIC, answers)]
        )

    def _delete_records(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        answers: list[DeleteRecordsResponseDeleteRecordsPartitionResult] = []
        for wish in (wish for topic in request.topics for wish in topic.partitions):
            answer = DeleteRecordsResponseDeleteRecordsPartitionResult(0, wish.partition_index)
            try:
                partition = self._led(wish.partition_index)
                partition.delete_records(wish.offset, now_ms=self._around.wall_ms())
            except LeaderRefusesError as refusal:
                answer.error_code = refusal.code
            except OffsetOutOfRangeError:
                answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            except StorageError:
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answers.append(answer)
        return DeleteRecordsResponse(
            topics=[DeleteRecordsResponseDeleteRecordsTopicResult(TOPIC, answers)]
        )

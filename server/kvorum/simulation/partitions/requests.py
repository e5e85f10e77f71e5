"""The requests that a simulated broker answers, by the real partitions."""

from collections.abc import Callable
from typing import Final

from kvorum.broker.fetcher.replica_fetcher import EARLIEST
from kvorum.broker.partition import ALL_IN_SYNC, Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.produced_batch import first_batch, produced_batch
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.event_loop import Runtime
from kvorum.simulation.partitions.fetch_handler import FetchHandler
from kvorum.simulation.partitions.group_handler import GroupHandler
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.settings import OFFSETS_ID, TOPIC, TOPIC_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.topic_log.log_validator import RecordValidationError
from kvorum.storage.topic_log.unified_log import LogAppendInfo
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.offset_fetch import OffsetFetchRequest
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.primitives import Message

VERSION: Final = 12
MARKER_TIMEOUT_MS: Final = 200


class ProduceHandler:
    """Appends batches, and answers once `acks` is fulfilled or the request's time is up."""

    def __init__(
        self,
        replicas: ReplicaManager,
        around: Surroundings,
        guard: Callable[[Callable[[], None]], Callable[[], None]],
    ) -> None:
        self._replicas = replicas
        self._around = around
        self._guard = guard

    def handle(self, request: ProduceRequest, reply: Reply) -> None:
        """Append the one batch of a request."""
        (topic,) = request.topic_data
        (data,) = topic.partition_data
        answer = ProduceResponse.PartitionProduceResponse(index=data.index, base_offset=-1)
        response = ProduceResponse(
            responses=[
                ProduceResponse.TopicProduceResponse(
                    topic_id=TOPIC_ID, partition_responses=[answer]
                )
            ]
        )

        def done(code: ErrorCode) -> None:
            answer.error_code = code
            if request.acks:
                reply(response)

        def append(partition: Partition) -> LogAppendInfo:
            before_end = partition.log.log_end_offset
            records = memoryview(data.records or b"")
            info = partition.append_records_to_leader(
                produced_batch(first_batch(records), records, VERSION),
                required_acks=request.acks,
                wall_ms=self._around.wall_ms(),
                now_ms=self._around.now_ms,
            )
            answer.base_offset = info.first_offset
            is_written = partition.log.log_end_offset > before_end
            name = "written batches" if is_written else "duplicates answered"
            self._around.ledger.counts[name] += 1
            return info

        is_waiting = request.acks == ALL_IN_SYNC
        self._append(data.index, append, request.timeout_ms if is_waiting else None, done)

    def mark(
        self, index: int, marker: TransactionMarker, done: Callable[[ErrorCode], None]
    ) -> None:
        """Append the marker that ends a transaction."""

        def append(partition: Partition) -> LogAppendInfo:
            wall_ms = self._around.wall_ms()
            return partition.append_records_to_leader(
                marker.batch(wall_ms),
                required_acks=ALL_IN_SYNC,
                wall_ms=wall_ms,
                now_ms=self._around.now_ms,
                origin=AppendOrigin.COORDINATOR,
                transaction=marker.append,
            )

        self._append(index, append, MARKER_TIMEOUT_MS, done)

    def _append(
        self,
        index: int,
        append: Callable[[Partition], LogAppendInfo],
        timeout_ms: int | None,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Append to a partition, and call `done` with the code.

        That is at once, or with a `timeout_ms` when the replicas in sync have what was appended.
        """
        partition = self._replicas.partition(TOPIC_ID, index)
        if partition is None:
            done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        try:
            info = append(partition)
        except (RecordValidationError, ProducerError, LeaderRefusesError) as error:
            done(error.code)
            return
        except StorageError:
            done(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        if timeout_ms is None:
            done(ErrorCode.NONE)
        else:
            self._wait(partition, info.last_offset + 1, timeout_ms, done)

    def _wait(
        self, partition: Partition, end: int, timeout_ms: int, done: Callable[[ErrorCode], None]
    ) -> None:
        """Call back once the replicas in sync have what is below `end`, or time is up."""
        is_over = False

        def look(*, is_last: bool = False) -> None:
            nonlocal is_over
            code = partition.check_enough_replicas_reach_offset(end)
            if is_over or (code is None and not is_last):
                return
            is_over = True
            partition.unwatch(look)
            done(ErrorCode.REQUEST_TIMED_OUT if code is None else code)

        partition.watch(look)
        self._around.events.after(timeout_ms, self._guard(lambda: look(is_last=True)))
        look()


class RequestHandler:
    """Answers of one process."""

    def __init__(
        self,
        replicas: ReplicaManager,
        groups: GroupCoordinatorService,
        around: Surroundings,
        process: Process,
        runtime: Runtime,
    ) -> None:
        self._replicas = replicas
        self._around = around
        self._fetches = FetchHandler(replicas, around, process.guard, runtime)
        self._groups = GroupHandler(groups, replicas, around, process)
        self._writes = ProduceHandler(replicas, around, process.guard)

    def handle(self, request: Message, reply: Reply, version: int) -> None:
        """Answer one request, now or later."""
        match request:
            case FetchRequest():
                self._fetches.handle(request, reply, version)
            case ProduceRequest():
                self._writes.handle(request, reply)
            case WriteTxnMarkersRequest():
                self._mark(request, reply)
            case ListOffsetsRequest():
                reply(self._list_offsets(request))
            case OffsetFetchRequest():
                self._groups.fetch(request, reply)
            case DeleteRecordsRequest():
                reply(self._delete_records(request))
            case _:
                self._groups.handle(request, reply, version)

    def _mark(self, request: WriteTxnMarkersRequest, reply: Reply) -> None:
        """Write the one marker of a request to its one partition."""
        (wanted,) = request.markers
        (topic,) = wanted.topics
        (index,) = topic.partition_indexes

        def done(code: ErrorCode) -> None:
            topic_result = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                topic.name, [WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(index, code)]
            )
            one = WriteTxnMarkersResponse.WritableTxnMarkerResult(
                wanted.producer_id, [topic_result]
            )
            reply(WriteTxnMarkersResponse([one]))

        handler = self._groups if topic.name == GROUP_METADATA_TOPIC else self._writes
        handler.mark(index, TransactionMarker.of(wanted), done)

    def _partition(self, topic_id: bytes, index: int) -> Partition:
        """Return a partition of this broker; raises LeaderRefusesError."""
        partition = self._replicas.partition(topic_id, index)
        if partition is None:
            raise LeaderRefusesError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(topics=[self._offsets_of(topic) for topic in request.topics])

    def _offsets_of(
        self, topic: ListOffsetsRequest.ListOffsetsTopic
    ) -> ListOffsetsResponse.ListOffsetsTopicResponse:
        topic_id = TOPIC_ID if topic.name == TOPIC else OFFSETS_ID
        answers: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = []
        for requested in topic.partitions:
            answer = ListOffsetsResponse.ListOffsetsPartitionResponse(requested.partition_index)
            try:
                partition = self._partition(topic_id, requested.partition_index)
                partition.demand_leader()
                partition.check_current_leader_epoch(requested.current_leader_epoch)
                is_start = requested.timestamp == EARLIEST
                log = partition.log.local_log
                answer.offset = log.log_start_offset if is_start else log.log_end_offset
            except LeaderRefusesError as refusal:
                answer.error_code = refusal.code
            answers.append(answer)
        return ListOffsetsResponse.ListOffsetsTopicResponse(topic.name, answers)

    def _delete_records(self, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        answers: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = []
        for requested in (requested for topic in request.topics for requested in topic.partitions):
            answer = DeleteRecordsResponse.DeleteRecordsPartitionResult(
                0, requested.partition_index
            )
            try:
                partition = self._partition(TOPIC_ID, requested.partition_index)
                partition.delete_records(requested.offset, now_ms=self._around.wall_ms())
            except LeaderRefusesError as refusal:
                answer.error_code = refusal.code
            except OffsetOutOfRangeError:
                answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            except StorageError:
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            answers.append(answer)
        return DeleteRecordsResponse(
            topics=[DeleteRecordsResponse.DeleteRecordsTopicResult(TOPIC, answers)]
        )

"""The requests that a simulated broker answers, by the real partitions."""

from kvorum.broker.fetcher.replica_fetcher import EARLIEST
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.outcomes import LeaderRefusesError
from kvorum.broker.transaction_marker import TransactionMarker
from kvorum.groups.coordinator_partition import GROUP_METADATA_TOPIC
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.simulation.partitions.fetch_handler import FetchHandler
from kvorum.simulation.partitions.group_handler import GroupHandler
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.produce_handler import ProduceHandler
from kvorum.simulation.partitions.settings import OFFSETS_ID, TOPIC, TOPIC_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.errors import OffsetOutOfRangeError, StorageError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.offset_fetch import OffsetFetchRequest
from kvorum.wire.messages.produce import ProduceRequest
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.primitives import Message


class RequestHandler:
    """Answers of one process."""

    def __init__(
        self,
        replicas: ReplicaManager,
        groups: GroupCoordinatorService,
        around: Surroundings,
        process: Process,
    ) -> None:
        self._replicas = replicas
        self._around = around
        self._fetches = FetchHandler(replicas, around, process.guard)
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
            result = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(index, code)
            topic_result = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                topic.name, [result]
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

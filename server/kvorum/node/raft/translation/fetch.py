"""Fetch (1) of the metadata partition; the core does not see the records' bytes."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.raft.replica_key import ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

TOPIC_ID_VERSION = 13
"""The first version with topic ids, which a fetch of the metadata topic needs."""
_ENDPOINTS_VERSION = 17
_HIGH_WATERMARK_ABSENT = 2**63 - 1
_UNKNOWN = -1
FIRST_REFUSAL_WITHOUT_PARTITIONS: Final = 13


def read_request(request: FetchRequest, *, cluster_id: str) -> core.FetchRequest | FetchResponse:
    """Return the core's form of a request, or its refusal."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = _only_partition(request)
    if partition is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    # Versions from 15 on have the replica id in the replica state, older ones in a field.
    replica_id = max(request.replica_state.replica_id, request.replica_id)
    has_high_watermark = partition.high_watermark != _HIGH_WATERMARK_ABSENT
    return core.FetchRequest(
        replica=common.key_or_none(replica_id, partition.replica_directory_id),
        epoch=partition.current_leader_epoch,
        position=OffsetAndEpoch(partition.fetch_offset, partition.last_fetched_epoch),
        max_wait_ms=request.max_wait_ms,
        bytes_max=request.max_bytes,
        high_watermark=partition.high_watermark if has_high_watermark else None,
    )


def _only_partition(request: FetchRequest) -> FetchRequest.FetchPartition | None:
    if len(request.topics) != 1 or request.topics[0].topic_id != METADATA_TOPIC_ID:
        return None
    partitions = request.topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition != CLUSTER_METADATA_PARTITION:
        return None
    return partitions[0]


def write_answer(
    answer: core.FetchResponse, *, version: int, listener_name: str, records: memoryview
) -> FetchResponse:
    """Return Kafka's form of a response of the core, with `records`."""
    known = answer.high_watermark
    partition = FetchResponse.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        error_code=answer.error,
        high_watermark=_UNKNOWN if known is None else known,
        log_start_offset=answer.log_start_offset,
        current_leader=FetchResponse.LeaderIdAndEpoch(
            common.leader_id_of(answer.leader), answer.leader.epoch
        ),
        records=records,
    )
    if answer.diverging is not None:
        partition.diverging_epoch = FetchResponse.EpochEndOffset(
            epoch=answer.diverging.epoch, end_offset=answer.diverging.offset
        )
    if answer.snapshot_id is not None:
        partition.snapshot_id = FetchResponse.SnapshotId(
            end_offset=answer.snapshot_id.offset, epoch=answer.snapshot_id.epoch
        )
    topic = FetchResponse.FetchableTopicResponse(
        CLUSTER_METADATA_TOPIC, METADATA_TOPIC_ID, [partition]
    )
    return FetchResponse(
        responses=[topic],
        node_endpoints=common.node_endpoints(
            answer.leader,
            FetchResponse.NodeEndpoint,
            listener_name=listener_name,
            is_version_new_enough=version >= _ENDPOINTS_VERSION,
        ),
    )


def write_request(request: core.FetchRequest, *, cluster_id: str, version: int) -> FetchRequest:
    """Return the request to send in `version`, which decides the place of the replica's id."""
    replica = request.replica or ReplicaKey(common.NO_NODE)
    known = request.high_watermark
    partition = FetchRequest.FetchPartition(
        partition=CLUSTER_METADATA_PARTITION,
        current_leader_epoch=request.epoch,
        fetch_offset=request.position.offset,
        last_fetched_epoch=request.position.epoch,
        replica_directory_id=common.directory_id_of(replica),
        high_watermark=_HIGH_WATERMARK_ABSENT if known is None else known,
    )
    if version < 18:
        partition.high_watermark = _HIGH_WATERMARK_ABSENT
    has_state = version >= 15
    return FetchRequest(
        cluster_id=cluster_id,
        replica_id=common.NO_NODE if has_state else replica.id,
        replica_state=FetchRequest.ReplicaState(replica.id if has_state else common.NO_NODE),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.bytes_max,
        topics=[FetchRequest.FetchTopic(CLUSTER_METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def partition_of(response: FetchResponse) -> FetchResponse.PartitionData | None:
    """Return the metadata partition if a response contains it, and nothing else."""
    if len(response.responses) != 1 or response.responses[0].topic_id != METADATA_TOPIC_ID:
        return None
    partitions = response.responses[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != CLUSTER_METADATA_PARTITION:
        return None
    return partitions[0]


def read_response(
    response: FetchResponse, *, listener_name: str, batches: tuple[core.BatchSummary, ...]
) -> core.FetchResponse | core.RequestFailed:
    """Return the core's form of a response, whose records contain `batches`."""
    if response.error_code != ErrorCode.NONE:
        return common.failed(response.error_code)
    partition = partition_of(response)
    if partition is None:
        return common.misshapen("FetchResponse")
    leader = partition.current_leader
    diverging = OffsetAndEpoch(
        partition.diverging_epoch.end_offset, partition.diverging_epoch.epoch
    )
    snapshot_id = OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    return core.FetchResponse(
        error=common.error_of(partition.error_code),
        leader=common.known_leader(
            leader.leader_epoch,
            leader.leader_id,
            response.node_endpoints,
            listener_name=listener_name,
        ),
        high_watermark=None if partition.high_watermark < 0 else partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging=None if min(diverging.offset, diverging.epoch) < 0 else diverging,
        snapshot_id=None if max(snapshot_id.offset, snapshot_id.epoch) < 0 else snapshot_id,
        batches=batches,
    )


def refuse_fetch(request: Message, error: RequestError, version: int) -> FetchResponse:
    """Refuse Fetch; older versions repeat the error for each partition."""
    assert isinstance(request, FetchRequest)
    response = FetchResponse(error_code=error.code, session_id=request.session_id)
    if version >= FIRST_REFUSAL_WITHOUT_PARTITIONS:
        return response
    for topic in request.topics:
        partitions = [
            FetchResponse.PartitionData(
                partition_index=partition.partition,
                error_code=error.code,
                high_watermark=-1,
                records=b"",
            )
            for partition in topic.partitions
        ]
        response.responses.append(
            FetchResponse.FetchableTopicResponse(topic=topic.topic, partitions=partitions)
        )
    return response


API: Final = RaftApi(
    request=FetchRequest, permission=AclOperation.CLUSTER_ACTION, refuse=refuse_fetch
)

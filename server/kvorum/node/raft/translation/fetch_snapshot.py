"""FetchSnapshot (59); the core does not see the snapshot's bytes."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.raft.replica_key import ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


def read_request(
    request: FetchSnapshotRequest, *, cluster_id: str
) -> core.FetchSnapshotRequest | FetchSnapshotResponse:
    """Return the core's form of a request, or its refusal."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    topic = request.topics[0]
    partition = topic.partitions[0]
    if (topic.name, partition.partition) != (CLUSTER_METADATA_TOPIC, CLUSTER_METADATA_PARTITION):
        return _unknown_partition(topic.name, partition.partition)
    snapshot_id = partition.snapshot_id
    return core.FetchSnapshotRequest(
        replica=common.key_or_none(request.replica_id, partition.replica_directory_id),
        epoch=partition.current_leader_epoch,
        snapshot_id=OffsetAndEpoch(snapshot_id.end_offset, snapshot_id.epoch),
        position=partition.position,
        bytes_max=request.max_bytes,
    )


def _unknown_partition(topic: str, partition: int) -> FetchSnapshotResponse:
    answer = FetchSnapshotResponse.PartitionSnapshot(
        index=partition, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, unaligned_records=b""
    )
    return FetchSnapshotResponse(topics=[FetchSnapshotResponse.TopicSnapshot(topic, [answer])])


def write_answer(
    answer: core.FetchSnapshotResponse, *, version: int, listener_name: str, part: bytes
) -> FetchSnapshotResponse:
    """Return Kafka's form of a response of the core, with the bytes of `part`."""
    partition = FetchSnapshotResponse.PartitionSnapshot(
        index=CLUSTER_METADATA_PARTITION,
        error_code=answer.error,
        current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(
            common.leader_id_of(answer.leader), answer.leader.epoch
        ),
        unaligned_records=part,
    )
    if answer.error is core.Error.NONE:
        partition.snapshot_id = FetchSnapshotResponse.SnapshotId(
            answer.snapshot_id.offset, answer.snapshot_id.epoch
        )
        partition.size = answer.size
        partition.position = answer.position
    return FetchSnapshotResponse(
        topics=[FetchSnapshotResponse.TopicSnapshot(CLUSTER_METADATA_TOPIC, [partition])],
        node_endpoints=common.node_endpoints(
            answer.leader,
            FetchSnapshotResponse.NodeEndpoint,
            listener_name=listener_name,
            is_version_new_enough=version >= 1,
        ),
    )


def write_request(request: core.FetchSnapshotRequest, *, cluster_id: str) -> FetchSnapshotRequest:
    """Return the request to send."""
    replica = request.replica or ReplicaKey(common.NO_NODE)
    partition = FetchSnapshotRequest.PartitionSnapshot(
        partition=CLUSTER_METADATA_PARTITION,
        current_leader_epoch=request.epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(
            request.snapshot_id.offset, request.snapshot_id.epoch
        ),
        position=request.position,
        replica_directory_id=common.directory_id_of(replica),
    )
    return FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=replica.id,
        max_bytes=request.bytes_max,
        topics=[FetchSnapshotRequest.TopicSnapshot(CLUSTER_METADATA_TOPIC, [partition])],
    )


def partition_of(response: FetchSnapshotResponse) -> FetchSnapshotResponse.PartitionSnapshot | None:
    """Return the metadata partition if a response contains it, and nothing else."""
    if len(response.topics) != 1 or response.topics[0].name != CLUSTER_METADATA_TOPIC:
        return None
    partitions = response.topics[0].partitions
    if len(partitions) != 1 or partitions[0].index != CLUSTER_METADATA_PARTITION:
        return None
    return partitions[0]


def read_response(
    response: FetchSnapshotResponse, *, listener_name: str
) -> core.FetchSnapshotResponse | core.RequestFailed:
    """Return the core's form of a response."""
    if response.error_code != ErrorCode.NONE:
        return common.failed(response.error_code)
    partition = partition_of(response)
    if partition is None:
        return common.misshapen("FetchSnapshotResponse")
    leader = partition.current_leader
    return core.FetchSnapshotResponse(
        error=common.error_of(partition.error_code),
        leader=common.known_leader(
            leader.leader_epoch,
            leader.leader_id,
            response.node_endpoints,
            listener_name=listener_name,
        ),
        snapshot_id=OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        position=partition.position,
        size=partition.size,
        part_size=len(partition.unaligned_records or b""),
    )


API: Final = RaftApi(
    request=FetchSnapshotRequest,
    permission=AclOperation.CLUSTER_ACTION,
    refuse=refused_by_code(FetchSnapshotResponse),
)

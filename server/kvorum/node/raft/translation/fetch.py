"""Fetch (1) of the metadata partition; records are the shell's, not the core's."""

from __future__ import annotations

from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.raft.basics import OffsetAndEpoch, ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
)
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

TOPIC_ID_VERSION = 13
"""The first version that names topics by id; without ids the metadata topic is not to be had."""
_ENDPOINTS_VERSION = 17
_HIGH_WATERMARK_ABSENT = 2**63 - 1
_UNKNOWN = -1


def read_request(request: FetchRequest, *, cluster_id: str) -> core.FetchRequest | FetchResponse:
    """Return the core's form of a request, or its refusal."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = _only_partition(request)
    if partition is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    # Versions from 15 on say it in the state, older ones in the field.
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


def _only_partition(request: FetchRequest) -> FetchRequestFetchPartition | None:
    if len(request.topics) != 1 or request.topics[0].topic_id != METADATA_TOPIC_ID:
        return None
    partitions = request.topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition != common.METADATA_PARTITION:
        return None
    return partitions[0]


def write_answer(
    answer: core.FetchResponse, *, version: int, listener_name: str, records: memoryview
) -> FetchResponse:
    """Return the response that an answer stands for, with the records that the shell has read."""
    leader_id = common.leader_id_of(answer.leader)
    known = answer.high_watermark
    partition = FetchResponsePartitionData(
        partition_index=common.METADATA_PARTITION,
        error_code=answer.error,
        high_watermark=_UNKNOWN if known is None else known,
        log_start_offset=answer.log_start_offset,
        current_leader=FetchResponseLeaderIdAndEpoch(leader_id, answer.leader.epoch),
        records=records,
    )
    if answer.diverging is not None:
        partition.diverging_epoch = FetchResponseEpochEndOffset(
            epoch=answer.diverging.epoch, end_offset=answer.diverging.offset
        )
    if answer.snapshot_id is not None:
        partition.snapshot_id = FetchResponseSnapshotId(
            end_offset=answer.snapshot_id.offset, epoch=answer.snapshot_id.epoch
        )
    topic = FetchResponseFetchableTopicResponse(
        common.METADATA_TOPIC, METADATA_TOPIC_ID, [partition]
    )
    response = FetchResponse(responses=[topic])
    endpoint = common.leader_endpoint(
        answer.leader,
        listener_name=listener_name,
        is_version_new_enough=version >= _ENDPOINTS_VERSION,
    )
    if endpoint is not None:
        response.node_endpoints.append(
            FetchResponseNodeEndpoint(leader_id, endpoint.host, endpoint.port)
        )
    return response


def write_request(request: core.FetchRequest, *, cluster_id: str, version: int) -> FetchRequest:
    """Return the request to send in `version`, which decides where the replica's id goes."""
    replica = request.replica or ReplicaKey(common.NO_NODE)
    known = request.high_watermark
    partition = FetchRequestFetchPartition(
        partition=common.METADATA_PARTITION,
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
        replica_state=FetchRequestReplicaState(replica.id if has_state else common.NO_NODE),
        max_wait_ms=request.max_wait_ms,
        max_bytes=request.bytes_max,
        topics=[FetchRequestFetchTopic(common.METADATA_TOPIC, METADATA_TOPIC_ID, [partition])],
    )


def partition_of(response: FetchResponse) -> FetchResponsePartitionData | None:
    """Return the metadata partition if that, and nothing else, is in a response."""
    if len(response.responses) != 1 or response.responses[0].topic_id != METADATA_TOPIC_ID:
        return None
    partitions = response.responses[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != common.METADATA_PARTITION:
        return None
    return partitions[0]


def read_response(
    response: FetchResponse,
    *,
    listener_name: str,
    batches: tuple[core.BatchSummary, ...],
) -> core.FetchResponse | core.RequestFailed:
    """Return the core's form of a response, in whose records the shell has found `batches`."""
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
        diverging=None if min(diverging) < 0 else diverging,
        snapshot_id=None if max(snapshot_id) < 0 else snapshot_id,
        batches=batches,
    )

"""EndQuorumEpoch (54)."""

from __future__ import annotations

from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.raft.basics import Endpoint, ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochRequestLeaderEndpoint,
    EndQuorumEpochRequestPartitionData,
    EndQuorumEpochRequestReplicaInfo,
    EndQuorumEpochRequestTopicData,
    EndQuorumEpochResponse,
    EndQuorumEpochResponseNodeEndpoint,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
)


def read_request(
    request: EndQuorumEpochRequest, *, cluster_id: str
) -> core.EndQuorumEpochRequest | EndQuorumEpochResponse:
    """Return the core's form of a request, or its refusal."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return EndQuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = common.only_partition(request.topics)
    if partition is None:
        return EndQuorumEpochResponse(ErrorCode.INVALID_REQUEST)
    candidates = [
        common.replica_key(one.candidate_id, one.candidate_directory_id)
        for one in partition.preferred_candidates
    ]
    # Version 0 names the successors by their ids alone.
    successors = [ReplicaKey(voter_id) for voter_id in partition.preferred_successors]
    return core.EndQuorumEpochRequest(
        epoch=partition.leader_epoch,
        leader_id=partition.leader_id,
        preferred=tuple(candidates or successors),
        endpoints=tuple(
            Endpoint(one.name.upper(), one.host, one.port) for one in request.leader_endpoints
        ),
    )


def write_answer(
    answer: core.EndQuorumEpochResponse, *, version: int, listener_name: str
) -> EndQuorumEpochResponse:
    """Return the response that an answer stands for."""
    leader_id = common.leader_id_of(answer.leader)
    partition = EndQuorumEpochResponsePartitionData(
        partition_index=common.METADATA_PARTITION,
        error_code=answer.error,
        leader_id=leader_id,
        leader_epoch=answer.leader.epoch,
    )
    topic = EndQuorumEpochResponseTopicData(common.METADATA_TOPIC, [partition])
    response = EndQuorumEpochResponse(topics=[topic])
    endpoint = common.leader_endpoint(
        answer.leader, listener_name=listener_name, is_version_new_enough=version >= 1
    )
    if endpoint is not None:
        response.node_endpoints.append(
            EndQuorumEpochResponseNodeEndpoint(leader_id, endpoint.host, endpoint.port)
        )
    return response


def write_request(
    request: core.EndQuorumEpochRequest, *, cluster_id: str, version: int
) -> EndQuorumEpochRequest:
    """Return the request to send in `version`, which decides how the successors are named."""
    partition = EndQuorumEpochRequestPartitionData(
        partition_index=common.METADATA_PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    if version < 1:
        partition.preferred_successors = [key.id for key in request.preferred]
    else:
        partition.preferred_candidates = [
            EndQuorumEpochRequestReplicaInfo(key.id, common.directory_id_of(key))
            for key in request.preferred
        ]
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[EndQuorumEpochRequestTopicData(common.METADATA_TOPIC, [partition])],
        leader_endpoints=[
            EndQuorumEpochRequestLeaderEndpoint(one.name, one.host, one.port)
            for one in request.endpoints
        ],
    )


def read_response(
    response: EndQuorumEpochResponse, *, listener_name: str
) -> core.EndQuorumEpochResponse | core.RequestFailed:
    """Return the core's form of a response."""
    if response.error_code != ErrorCode.NONE:
        return common.failed(response.error_code)
    partition = common.only_partition(response.topics)
    if partition is None:
        return common.misshapen("EndQuorumEpochResponse")
    return core.EndQuorumEpochResponse(
        error=common.error_of(partition.error_code),
        leader=common.known_leader(
            partition.leader_epoch,
            partition.leader_id,
            response.node_endpoints,
            listener_name=listener_name,
        ),
    )

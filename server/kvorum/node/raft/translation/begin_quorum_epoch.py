"""BeginQuorumEpoch (53)."""

from __future__ import annotations

from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.raft.basics import Endpoint, ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestLeaderEndpoint,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponseNodeEndpoint,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
)


def read_request(
    request: BeginQuorumEpochRequest, *, cluster_id: str
) -> core.BeginQuorumEpochRequest | BeginQuorumEpochResponse:
    """Return the core's form of a request, or its refusal."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return BeginQuorumEpochResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = common.only_partition(request.topics)
    if partition is None:
        return BeginQuorumEpochResponse(ErrorCode.INVALID_REQUEST)
    return core.BeginQuorumEpochRequest(
        epoch=partition.leader_epoch,
        leader_id=partition.leader_id,
        voter=common.key_or_none(request.voter_id, partition.voter_directory_id),
        endpoints=tuple(
            Endpoint(one.name.upper(), one.host, one.port) for one in request.leader_endpoints
        ),
    )


def write_answer(
    answer: core.BeginQuorumEpochResponse, *, version: int, listener_name: str
) -> BeginQuorumEpochResponse:
    """Return the response that an answer stands for."""
    leader_id = common.leader_id_of(answer.leader)
    partition = BeginQuorumEpochResponsePartitionData(
        partition_index=common.METADATA_PARTITION,
        error_code=answer.error,
        leader_id=leader_id,
        leader_epoch=answer.leader.epoch,
    )
    topic = BeginQuorumEpochResponseTopicData(common.METADATA_TOPIC, [partition])
    response = BeginQuorumEpochResponse(topics=[topic])
    endpoint = common.leader_endpoint(
        answer.leader, listener_name=listener_name, is_version_new_enough=version >= 1
    )
    if endpoint is not None:
        response.node_endpoints.append(
            BeginQuorumEpochResponseNodeEndpoint(leader_id, endpoint.host, endpoint.port)
        )
    return response


def write_request(
    request: core.BeginQuorumEpochRequest, *, cluster_id: str
) -> BeginQuorumEpochRequest:
    """Return the request to send."""
    voter = request.voter or ReplicaKey(common.NO_NODE)
    partition = BeginQuorumEpochRequestPartitionData(
        partition_index=common.METADATA_PARTITION,
        voter_directory_id=common.directory_id_of(voter),
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=[BeginQuorumEpochRequestTopicData(common.METADATA_TOPIC, [partition])],
        leader_endpoints=[
            BeginQuorumEpochRequestLeaderEndpoint(one.name, one.host, one.port)
            for one in request.endpoints
        ],
    )


def read_response(
    response: BeginQuorumEpochResponse, *, listener_name: str
) -> core.BeginQuorumEpochResponse | core.RequestFailed:
    """Return the core's form of a response."""
    if response.error_code != ErrorCode.NONE:
        return common.failed(response.error_code)
    partition = common.only_partition(response.topics)
    if partition is None:
        return common.misshapen("BeginQuorumEpochResponse")
    return core.BeginQuorumEpochResponse(
        error=common.error_of(partition.error_code),
        leader=common.known_leader(
            partition.leader_epoch,
            partition.leader_id,
            response.node_endpoints,
            listener_name=listener_name,
        ),
    )

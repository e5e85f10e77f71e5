"""BeginQuorumEpoch (53)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)


def read_request(
    request: BeginQuorumEpochRequest, *, cluster_id: str
) -> core.BeginQuorumEpochRequest | BeginQuorumEpochResponse:
    """Return the core's form of a request, or its refusal."""
    partition = common.demanded_partition(request, cluster_id=cluster_id)
    if isinstance(partition, ErrorCode):
        return BeginQuorumEpochResponse(partition)
    return core.BeginQuorumEpochRequest(
        epoch=partition.leader_epoch,
        leader_id=partition.leader_id,
        voter=common.key_or_none(request.voter_id, partition.voter_directory_id),
        endpoints=common.read_endpoints(request.leader_endpoints),
    )


def write_answer(
    answer: core.BeginQuorumEpochResponse, *, version: int, listener_name: str
) -> BeginQuorumEpochResponse:
    """Return Kafka's form of a response of the core."""
    partition = BeginQuorumEpochResponse.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        error_code=answer.error,
        leader_id=common.leader_id_of(answer.leader),
        leader_epoch=answer.leader.epoch,
    )
    return BeginQuorumEpochResponse(
        topics=[BeginQuorumEpochResponse.TopicData(CLUSTER_METADATA_TOPIC, [partition])],
        node_endpoints=common.node_endpoints(
            answer.leader,
            BeginQuorumEpochResponse.NodeEndpoint,
            listener_name=listener_name,
            is_version_new_enough=version >= 1,
        ),
    )


def write_request(
    request: core.BeginQuorumEpochRequest, *, cluster_id: str
) -> BeginQuorumEpochRequest:
    """Return the request to send."""
    partition = BeginQuorumEpochRequest.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        voter_directory_id=common.directory_id_of(request.voter),
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=common.id_of(request.voter),
        topics=[BeginQuorumEpochRequest.TopicData(CLUSTER_METADATA_TOPIC, [partition])],
        leader_endpoints=common.write_endpoints(
            request.endpoints, BeginQuorumEpochRequest.LeaderEndpoint
        ),
    )


def read_response(
    response: BeginQuorumEpochResponse, *, listener_name: str
) -> core.BeginQuorumEpochResponse | core.RequestFailed:
    """Return the core's form of a response."""
    answer = common.read_answer(response, listener_name=listener_name)
    if isinstance(answer, core.RequestFailed):
        return answer
    return core.BeginQuorumEpochResponse(error=answer.error, leader=answer.leader)


API: Final = RaftApi(
    request=BeginQuorumEpochRequest,
    permission=AclOperation.CLUSTER_ACTION,
    refuse=refused_by_code(BeginQuorumEpochResponse),
)

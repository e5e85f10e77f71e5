"""EndQuorumEpoch (54)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.raft.replica_key import ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


def read_request(
    request: EndQuorumEpochRequest, *, cluster_id: str
) -> core.EndQuorumEpochRequest | EndQuorumEpochResponse:
    """Return the core's form of a request, or its refusal."""
    partition = common.demanded_partition(request, cluster_id=cluster_id)
    if isinstance(partition, ErrorCode):
        return EndQuorumEpochResponse(partition)
    candidates = [
        common.replica_key(one.candidate_id, one.candidate_directory_id)
        for one in partition.preferred_candidates
    ]
    # Version 0 has only the ids of the successors.
    successors = [ReplicaKey(voter_id) for voter_id in partition.preferred_successors]
    return core.EndQuorumEpochRequest(
        epoch=partition.leader_epoch,
        leader_id=partition.leader_id,
        preferred=tuple(candidates or successors),
        endpoints=common.read_endpoints(request.leader_endpoints),
    )


def write_answer(
    answer: core.EndQuorumEpochResponse, *, version: int, listener_name: str
) -> EndQuorumEpochResponse:
    """Return Kafka's form of a response of the core."""
    partition = EndQuorumEpochResponse.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        error_code=answer.error,
        leader_id=common.leader_id_of(answer.leader),
        leader_epoch=answer.leader.epoch,
    )
    return EndQuorumEpochResponse(
        topics=[EndQuorumEpochResponse.TopicData(CLUSTER_METADATA_TOPIC, [partition])],
        node_endpoints=common.node_endpoints(
            answer.leader,
            EndQuorumEpochResponse.NodeEndpoint,
            listener_name=listener_name,
            is_version_new_enough=version >= 1,
        ),
    )


def write_request(
    request: core.EndQuorumEpochRequest, *, cluster_id: str, version: int
) -> EndQuorumEpochRequest:
    """Return the request to send in `version`, which decides the form of the successors."""
    partition = EndQuorumEpochRequest.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    if version < 1:
        partition.preferred_successors = [key.id for key in request.preferred]
    else:
        partition.preferred_candidates = [
            EndQuorumEpochRequest.ReplicaInfo(key.id, common.directory_id_of(key))
            for key in request.preferred
        ]
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[EndQuorumEpochRequest.TopicData(CLUSTER_METADATA_TOPIC, [partition])],
        leader_endpoints=common.write_endpoints(
            request.endpoints, EndQuorumEpochRequest.LeaderEndpoint
        ),
    )


def read_response(
    response: EndQuorumEpochResponse, *, listener_name: str
) -> core.EndQuorumEpochResponse | core.RequestFailed:
    """Return the core's form of a response."""
    answer = common.read_answer(response, listener_name=listener_name)
    if isinstance(answer, core.RequestFailed):
        return answer
    return core.EndQuorumEpochResponse(error=answer.error, leader=answer.leader)


API: Final = RaftApi(
    request=EndQuorumEpochRequest,
    permission=AclOperation.CLUSTER_ACTION,
    refuse=refused_by_code(EndQuorumEpochResponse),
)

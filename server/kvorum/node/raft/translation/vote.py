"""Vote (52)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.vote import VoteRequest, VoteResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

PRE_VOTE_VERSION = 2
"""The first version that can ask for a pre-vote."""


def read_request(request: VoteRequest, *, cluster_id: str) -> core.VoteRequest | VoteResponse:
    """Return the core's form of a request, or its refusal."""
    partition = common.demanded_partition(request, cluster_id=cluster_id)
    if isinstance(partition, ErrorCode):
        return VoteResponse(partition)
    return core.VoteRequest(
        epoch=partition.replica_epoch,
        replica=common.replica_key(partition.replica_id, partition.replica_directory_id),
        voter=common.key_or_none(request.voter_id, partition.voter_directory_id),
        log_end=OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch),
        is_pre_vote=partition.pre_vote,
    )


def write_answer(answer: core.VoteResponse, *, version: int, listener_name: str) -> VoteResponse:
    """Return Kafka's form of a response of the core."""
    partition = VoteResponse.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        error_code=answer.error,
        leader_id=common.leader_id_of(answer.leader),
        leader_epoch=answer.leader.epoch,
        vote_granted=answer.is_granted,
    )
    return VoteResponse(
        topics=[VoteResponse.TopicData(CLUSTER_METADATA_TOPIC, [partition])],
        node_endpoints=common.node_endpoints(
            answer.leader,
            VoteResponse.NodeEndpoint,
            listener_name=listener_name,
            is_version_new_enough=version >= 1,
        ),
    )


def write_request(request: core.VoteRequest, *, cluster_id: str) -> VoteRequest:
    """Return the request to send."""
    partition = VoteRequest.PartitionData(
        partition_index=CLUSTER_METADATA_PARTITION,
        replica_epoch=request.epoch,
        replica_id=request.replica.id,
        replica_directory_id=common.directory_id_of(request.replica),
        voter_directory_id=common.directory_id_of(request.voter),
        last_offset_epoch=request.log_end.epoch,
        last_offset=request.log_end.offset,
        pre_vote=request.is_pre_vote,
    )
    topic = VoteRequest.TopicData(CLUSTER_METADATA_TOPIC, [partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=common.id_of(request.voter), topics=[topic])


def read_response(
    response: VoteResponse, *, listener_name: str
) -> core.VoteResponse | core.RequestFailed:
    """Return the core's form of a response."""
    answer = common.read_answer(response, listener_name=listener_name)
    if isinstance(answer, core.RequestFailed):
        return answer
    return core.VoteResponse(
        error=answer.error, leader=answer.leader, is_granted=answer.partition.vote_granted
    )


API: Final = RaftApi(
    request=VoteRequest,
    permission=AclOperation.CLUSTER_ACTION,
    refuse=refused_by_code(VoteResponse),
)

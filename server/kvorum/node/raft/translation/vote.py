"""Vote (52)."""

from __future__ import annotations

from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.raft.basics import OffsetAndEpoch, ReplicaKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.vote import (
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
    VoteResponseNodeEndpoint,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)

PRE_VOTE_VERSION = 2
"""The first version that can ask for a pre-vote."""


def read_request(request: VoteRequest, *, cluster_id: str) -> core.VoteRequest | VoteResponse:
    """Return the core's form of a request, or its refusal."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return VoteResponse(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = common.only_partition(request.topics)
    if partition is None:
        return VoteResponse(ErrorCode.INVALID_REQUEST)
    return core.VoteRequest(
        epoch=partition.replica_epoch,
        replica=common.replica_key(partition.replica_id, partition.replica_directory_id),
        voter=common.key_or_none(request.voter_id, partition.voter_directory_id),
        log_end=OffsetAndEpoch(partition.last_offset, partition.last_offset_epoch),
        is_pre_vote=partition.pre_vote,
    )


def write_answer(answer: core.VoteResponse, *, version: int, listener_name: str) -> VoteResponse:
    """Return the response that an answer stands for."""
    partition = VoteResponsePartitionData(
        partition_index=common.METADATA_PARTITION,
        error_code=answer.error,
        leader_id=common.leader_id_of(answer.leader),
        leader_epoch=answer.leader.epoch,
        vote_granted=answer.is_granted,
    )
    response = VoteResponse(topics=[VoteResponseTopicData(common.METADATA_TOPIC, [partition])])
    endpoint = common.leader_endpoint(
        answer.leader, listener_name=listener_name, is_version_new_enough=version >= 1
    )
    if endpoint is not None:
        response.node_endpoints.append(
            VoteResponseNodeEndpoint(
                common.leader_id_of(answer.leader), endpoint.host, endpoint.port
            )
        )
    return response


def write_request(request: core.VoteRequest, *, cluster_id: str) -> VoteRequest:
    """Return the request to send."""
    voter = request.voter or ReplicaKey(common.NO_NODE)
    partition = VoteRequestPartitionData(
        partition_index=common.METADATA_PARTITION,
        replica_epoch=request.epoch,
        replica_id=request.replica.id,
        replica_directory_id=common.directory_id_of(request.replica),
        voter_directory_id=common.directory_id_of(voter),
        last_offset_epoch=request.log_end.epoch,
        last_offset=request.log_end.offset,
        pre_vote=request.is_pre_vote,
    )
    topic = VoteRequestTopicData(common.METADATA_TOPIC, [partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=voter.id, topics=[topic])


def read_response(
    response: VoteResponse, *, listener_name: str
) -> core.VoteResponse | core.RequestFailed:
    """Return the core's form of a response."""
    if response.error_code != ErrorCode.NONE:
        return common.failed(response.error_code)
    partition = common.only_partition(response.topics)
    if partition is None:
        return common.misshapen("VoteResponse")
    return core.VoteResponse(
        error=common.error_of(partition.error_code),
        leader=common.known_leader(
            partition.leader_epoch,
            partition.leader_id,
            response.node_endpoints,
            listener_name=listener_name,
        ),
        is_granted=partition.vote_granted,
    )

"""UpdateRaftVoter (82)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.raft import messages as core
from kvorum.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse


def read_request(
    request: UpdateRaftVoterRequest, *, cluster_id: str
) -> core.UpdateRaftVoterRequest:
    """Return the core's form of a request."""
    versions = request.k_raft_version_feature
    return core.UpdateRaftVoterRequest(
        epoch=request.current_leader_epoch,
        voter=common.key_or_none(request.voter_id, request.voter_directory_id),
        endpoints=common.endpoints_by_name(common.read_endpoints(request.listeners)),
        kraft_version_min=versions.min_supported_version,
        kraft_version_max=versions.max_supported_version,
        is_for_this_cluster=not common.is_other_cluster(request.cluster_id, cluster_id),
    )


def write_answer(
    answer: core.UpdateRaftVoterResponse, *, listener_name: str
) -> UpdateRaftVoterResponse:
    """Return Kafka's form of a response of the core."""
    leader = UpdateRaftVoterResponse.CurrentLeader(
        leader_id=common.leader_id_of(answer.leader), leader_epoch=answer.leader.epoch
    )
    endpoint = common.leader_endpoint(answer.leader, listener_name=listener_name)
    if endpoint is not None:
        leader.host, leader.port = endpoint.host, endpoint.port
    return UpdateRaftVoterResponse(error_code=answer.error, current_leader=leader)


def write_request(
    request: core.UpdateRaftVoterRequest, *, cluster_id: str
) -> UpdateRaftVoterRequest:
    """Return the request to send."""
    return UpdateRaftVoterRequest(
        cluster_id=cluster_id,
        current_leader_epoch=request.epoch,
        voter_id=common.id_of(request.voter),
        voter_directory_id=common.directory_id_of(request.voter),
        listeners=common.write_endpoints(request.endpoints, UpdateRaftVoterRequest.Listener),
        k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            request.kraft_version_min, request.kraft_version_max
        ),
    )


def read_response(
    response: UpdateRaftVoterResponse, *, listener_name: str
) -> core.UpdateRaftVoterResponse:
    """Return the core's form of a response."""
    leader = response.current_leader
    endpoints = common.endpoint_where_known(listener_name, leader.host, leader.port)
    is_known = leader.leader_id >= 0
    return core.UpdateRaftVoterResponse(
        error=common.error_of(response.error_code),
        leader=core.KnownLeader(
            leader.leader_epoch,
            leader.leader_id if is_known else None,
            endpoints if is_known else (),
        ),
    )


API: Final = RaftApi(
    request=UpdateRaftVoterRequest,
    permission=AclOperation.CLUSTER_ACTION,
    refuse=refused_by_code(UpdateRaftVoterResponse),
)

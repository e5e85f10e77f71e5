"""AddRaftVoter (80)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_default_message
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.node.raft.translation.admission import admit
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse

ACK_WHEN_COMMITTED_VERSION = 1
"""The first version in which a request need not wait until the new voter is committed."""


def read_request(
    request: AddRaftVoterRequest, *, cluster_id: str
) -> core.AddRaftVoterRequest | AddRaftVoterResponse:
    """Return the core's form of a request, or its refusal. Its timeout is ignored."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return AddRaftVoterResponse(
            error_code=ErrorCode.INCONSISTENT_CLUSTER_ID,
            error_message=common.other_cluster_text(request.cluster_id, cluster_id),
        )
    return core.AddRaftVoterRequest(
        voter=common.key_or_none(request.voter_id, request.voter_directory_id),
        endpoints=common.endpoints_by_name(common.read_endpoints(request.listeners)),
        acks_when_committed=request.ack_when_committed,
    )


def write_answer(answer: core.AddRaftVoterResponse) -> AddRaftVoterResponse:
    """Return Kafka's form of a response of the core."""
    return AddRaftVoterResponse(error_code=answer.error, error_message=answer.message)


def write_request(
    request: core.AddRaftVoterRequest, *, cluster_id: str, timeout_ms: int
) -> AddRaftVoterRequest:
    """Return the request to send."""
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=common.id_of(request.voter),
        voter_directory_id=common.directory_id_of(request.voter),
        listeners=common.write_endpoints(request.endpoints, AddRaftVoterRequest.Listener),
        ack_when_committed=request.acks_when_committed,
    )


def read_response(response: AddRaftVoterResponse) -> core.AddRaftVoterResponse:
    """Return the core's form of a response."""
    return core.AddRaftVoterResponse(
        error=common.error_of(response.error_code), message=response.error_message
    )


API: Final = RaftApi(
    request=AddRaftVoterRequest,
    permission=AclOperation.ALTER,
    refuse=refused_by_default_message(AddRaftVoterResponse),
    admit=admit,
)

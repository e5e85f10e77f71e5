"""RemoveRaftVoter (81)."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_default_message
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import common
from kvorum.node.raft.translation.admission import admit
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


def read_request(
    request: RemoveRaftVoterRequest, *, cluster_id: str
) -> core.RemoveRaftVoterRequest | RemoveRaftVoterResponse:
    """Return the core's form of a request, or its refusal."""
    if common.is_other_cluster(request.cluster_id, cluster_id):
        return RemoveRaftVoterResponse(
            error_code=ErrorCode.INCONSISTENT_CLUSTER_ID,
            error_message=common.other_cluster_text(request.cluster_id, cluster_id),
        )
    return core.RemoveRaftVoterRequest(
        voter=common.key_or_none(request.voter_id, request.voter_directory_id)
    )


def write_answer(answer: core.RemoveRaftVoterResponse) -> RemoveRaftVoterResponse:
    """Return Kafka's form of a response of the core."""
    return RemoveRaftVoterResponse(error_code=answer.error, error_message=answer.message)


def write_request(
    request: core.RemoveRaftVoterRequest, *, cluster_id: str
) -> RemoveRaftVoterRequest:
    """Return the request to send."""
    return RemoveRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=common.id_of(request.voter),
        voter_directory_id=common.directory_id_of(request.voter),
    )


def read_response(response: RemoveRaftVoterResponse) -> core.RemoveRaftVoterResponse:
    """Return the core's form of a response."""
    return core.RemoveRaftVoterResponse(
        error=common.error_of(response.error_code), message=response.error_message
    )


API: Final = RaftApi(
    request=RemoveRaftVoterRequest,
    permission=AclOperation.ALTER,
    refuse=refused_by_default_message(RemoveRaftVoterResponse),
    admit=admit,
)

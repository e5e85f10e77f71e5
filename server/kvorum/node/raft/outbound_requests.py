"""The core's requests to other replicas, sent over any connection, and their results."""

from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from kvorum.node.outbound.client_connection import (
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
    NoCommonVersionError,
)
from kvorum.node.raft.fetched_records import FetchedRecords, read_fetched
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.messages.update_raft_voter import UpdateRaftVoterResponse
from kvorum.wire.messages.vote import VoteRequest, VoteResponse
from kvorum.wire.primitives import Message

_KRAFT_VERSION_FEATURE = "kraft.version"
Response = TypeVar("Response", bound=Message)
VoterRequest: TypeAlias = (
    core.AddRaftVoterRequest
    | core.RemoveRaftVoterRequest
    | core.UpdateRaftVoterRequest
    | core.ApiVersionsRequest
)


class PeerConnection(Protocol):
    """A connection to one replica, whose versions are known."""

    def version_for(self, message: type[Message]) -> int:
        """Return the highest common version of a request; raises NoCommonVersionError."""
        ...

    async def request(self, message: Message, kind: type[Response], *, timeout_ms: int) -> Response:
        """Send a request; return its response, of class `kind`. Raises ClientConnectionError."""
        ...


class PeerResult(NamedTuple):
    """The result of a request; its bytes stay outside of the core."""

    response: core.Response | core.RequestFailed
    records: FetchedRecords | None = None
    snapshot_part: bytes = b""


async def ask(
    connection: PeerConnection, request: core.Request, *, settings: RaftSettings
) -> PeerResult:
    """Send a request in the highest common version; return the result.

    Raises ClientConnectionError, and WireError for an invalid response.
    """
    cluster_id, listener_name = settings.cluster_id, settings.controller_listener
    timeout_ms = settings.raft.request_timeout_ms
    match request:
        case core.VoteRequest():
            version = connection.version_for(VoteRequest)
            if request.is_pre_vote and version < vote.PRE_VOTE_VERSION:
                raise NoCommonVersionError("the peer does not know pre-votes")
            asked = vote.write_request(request, cluster_id=cluster_id)
            voted = await connection.request(asked, VoteResponse, timeout_ms=timeout_ms)
            return PeerResult(vote.read_response(voted, listener_name=listener_name))
        case core.BeginQuorumEpochRequest():
            begin = begin_quorum_epoch.write_request(request, cluster_id=cluster_id)
            begun = await connection.request(begin, BeginQuorumEpochResponse, timeout_ms=timeout_ms)
            return PeerResult(begin_quorum_epoch.read_response(begun, listener_name=listener_name))
        case core.EndQuorumEpochRequest():
            version = connection.version_for(EndQuorumEpochRequest)
            end = end_quorum_epoch.write_request(request, cluster_id=cluster_id, version=version)
            ended = await connection.request(end, EndQuorumEpochResponse, timeout_ms=timeout_ms)
            return PeerResult(end_quorum_epoch.read_response(ended, listener_name=listener_name))
        case core.FetchRequest():
            return await _ask_fetch(connection, request, settings=settings)
        case core.FetchSnapshotRequest():
            return await _ask_snapshot(connection, request, settings=settings)
        case core.DescribeQuorumRequest():
            raise TypeError("a replica does not send DescribeQuorum")
        case _:
            return PeerResult(await ask_about_voters(connection, request, settings=settings))


async def _ask_fetch(
    connection: PeerConnection, request: core.FetchRequest, *, settings: RaftSettings
) -> PeerResult:
    version = connection.version_for(FetchRequest)
    if version < fetch.TOPIC_ID_VERSION:
        raise NoCommonVersionError("the peer does not know topic ids")
    message = fetch.write_request(request, cluster_id=settings.cluster_id, version=version)
    response = await connection.request(
        message, FetchResponse, timeout_ms=settings.raft.request_timeout_ms
    )
    partition = fetch.partition_of(response)
    data = memoryview(b"" if partition is None else partition.records or b"")
    records = read_fetched(data)
    return PeerResult(
        fetch.read_response(
            response, listener_name=settings.controller_listener, batches=records.batches
        ),
        records=records,
    )


async def _ask_snapshot(
    connection: PeerConnection, request: core.FetchSnapshotRequest, *, settings: RaftSettings
) -> PeerResult:
    message = fetch_snapshot.write_request(request, cluster_id=settings.cluster_id)
    response = await connection.request(
        message, FetchSnapshotResponse, timeout_ms=settings.raft.request_timeout_ms
    )
    partition = fetch_snapshot.partition_of(response)
    part = b"" if partition is None else bytes(partition.unaligned_records or b"")
    return PeerResult(
        fetch_snapshot.read_response(response, listener_name=settings.controller_listener),
        snapshot_part=part,
    )


async def ask_about_voters(
    connection: PeerConnection, request: VoterRequest, *, settings: RaftSettings
) -> core.Response:
    """Send a request and return its response. Raises ClientConnectionError, WireError."""
    cluster_id, timeout_ms = settings.cluster_id, settings.raft.request_timeout_ms
    match request:
        case core.AddRaftVoterRequest():
            version = connection.version_for(AddRaftVoterRequest)
            if not request.acks_when_committed and (
                version < add_raft_voter.ACK_WHEN_COMMITTED_VERSION
            ):
                # The leader's response would wait for this replica, which does not fetch meanwhile.
                raise NoCommonVersionError("the peer adds nobody who joins by itself")
            add = add_raft_voter.write_request(
                request, cluster_id=cluster_id, timeout_ms=timeout_ms
            )
            added = await connection.request(add, AddRaftVoterResponse, timeout_ms=timeout_ms)
            return add_raft_voter.read_response(added)
        case core.RemoveRaftVoterRequest():
            remove = remove_raft_voter.write_request(request, cluster_id=cluster_id)
            removed = await connection.request(
                remove, RemoveRaftVoterResponse, timeout_ms=timeout_ms
            )
            return remove_raft_voter.read_response(removed)
        case core.UpdateRaftVoterRequest():
            update = update_raft_voter.write_request(request, cluster_id=cluster_id)
            updated = await connection.request(
                update, UpdateRaftVoterResponse, timeout_ms=timeout_ms
            )
            return update_raft_voter.read_response(
                updated, listener_name=settings.controller_listener
            )
        case core.ApiVersionsRequest():
            question = ApiVersionsRequest(
                client_software_name=CLIENT_SOFTWARE_NAME,
                client_software_version=CLIENT_SOFTWARE_VERSION,
            )
            versions = await connection.request(
                question, ApiVersionsResponse, timeout_ms=timeout_ms
            )
            return _supported_kraft_versions(versions)


def _supported_kraft_versions(response: ApiVersionsResponse) -> core.ApiVersionsResponse:
    """Return the kraft.versions that a node names in its response."""
    code = response.error_code
    if code != ErrorCode.NONE:
        is_known = code in ErrorCode.__members__.values()
        name = ErrorCode(code).name if is_known else ErrorCode.UNKNOWN_SERVER_ERROR.name
        return core.ApiVersionsResponse(error_name=name)
    for feature in response.supported_features:
        if feature.name == _KRAFT_VERSION_FEATURE:
            return core.ApiVersionsResponse((feature.min_version, feature.max_version))
    return core.ApiVersionsResponse()

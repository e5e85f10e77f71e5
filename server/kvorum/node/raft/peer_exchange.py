"""Exchanges between replicas: the core's requests over any connection, and those that come in.

An inbound request waits for the core's response.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from kvorum.node.outbound.client_connection import (
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
    NoCommonVersionError,
)
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.opened_directory import FetchedRecords, read_fetched
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation import (
    add_raft_voter,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from kvorum.raft import messages as core
from kvorum.raft.effects import Send, SendResponse
from kvorum.storage.errors import OffsetOutOfRangeError
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
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
ANSWER_BYTES_MAX = 8 * 1024 * 1024
"""The maximum size of records in a response, unless a single batch is bigger."""


Respond = Callable[[Message | RaftStoppedError], None]
"""Takes the response to a request, or the reason why none comes."""


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


class Links(Protocol):
    """Connections to other replicas."""

    def send(self, send: Send) -> None:
        """Send a request; its result is reported once, with its number."""
        ...


Connect: TypeAlias = Callable[[Callable[[int, PeerResult], None]], Links]
"""Creates the links of a replica, given the callback for results of requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """A request, its version and listener, and the receiver of its response."""

    request: Message
    version: int
    listener_name: str
    respond: Respond


def read_request(request: Message, *, cluster_id: str) -> core.Request | Message:
    """Return the core's form of a request, or the response that refuses it."""
    match request:
        case VoteRequest():
            return vote.read_request(request, cluster_id=cluster_id)
        case BeginQuorumEpochRequest():
            return begin_quorum_epoch.read_request(request, cluster_id=cluster_id)
        case EndQuorumEpochRequest():
            return end_quorum_epoch.read_request(request, cluster_id=cluster_id)
        case FetchRequest():
            return fetch.read_request(request, cluster_id=cluster_id)
        case FetchSnapshotRequest():
            return fetch_snapshot.read_request(request, cluster_id=cluster_id)
        case DescribeQuorumRequest():
            return describe_quorum.read_request(request)
        case AddRaftVoterRequest():
            return add_raft_voter.read_request(request, cluster_id=cluster_id)
        case RemoveRaftVoterRequest():
            return remove_raft_voter.read_request(request, cluster_id=cluster_id)
        case UpdateRaftVoterRequest():
            return update_raft_voter.read_request(request, cluster_id=cluster_id)
        case _:
            raise TypeError(f"{request.NAME} is not a request of the quorum")


class InboundRequests:
    """Gives each request a token, and encodes the core's response to that token."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        self._waiting: dict[int, _Waiting] = {}
        self._next_token = 1

    def add(self, request: Message, *, version: int, listener_name: str, respond: Respond) -> int:
        """Register a request and the receiver of its response; return its token."""
        token = self._next_token
        self._next_token += 1
        self._waiting[token] = _Waiting(
            request=request, version=version, listener_name=listener_name, respond=respond
        )
        return token

    def drop(self, token: int) -> None:
        """Remove a request whose response is no longer needed."""
        self._waiting.pop(token, None)

    def answer(self, answer: SendResponse, *, now_ms: int) -> None:
        """Pass the response of the core to its receiver; `now_ms` is the wall clock."""
        waiting = self._waiting.pop(answer.token, None)
        if waiting is not None:
            waiting.respond(self._response(waiting, answer.response, now_ms))

    def fail_all(self, error: RaftStoppedError) -> None:
        """Fail every waiting request."""
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            one.respond(error)

    def _response(self, waiting: _Waiting, answer: core.Response, now_ms: int) -> Message:
        version, listener_name = waiting.version, waiting.listener_name
        match answer:
            case core.VoteResponse():
                return vote.write_answer(answer, version=version, listener_name=listener_name)
            case core.BeginQuorumEpochResponse():
                return begin_quorum_epoch.write_answer(
                    answer, version=version, listener_name=listener_name
                )
            case core.EndQuorumEpochResponse():
                return end_quorum_epoch.write_answer(
                    answer, version=version, listener_name=listener_name
                )
            case core.FetchResponse():
                return fetch.write_answer(
                    answer,
                    version=version,
                    listener_name=listener_name,
                    records=self._records(answer),
                )
            case core.FetchSnapshotResponse():
                read, part = self._snapshot_part(answer)
                return fetch_snapshot.write_answer(
                    read, version=version, listener_name=listener_name, part=part
                )
            case core.DescribeQuorumResponse():
                request = waiting.request
                assert isinstance(request, DescribeQuorumRequest)
                return describe_quorum.write_answer(request, answer, version=version, now_ms=now_ms)
            case _:
                return _answer_about_voters(answer, listener_name=listener_name)

    def _records(self, answer: core.FetchResponse) -> memoryview:
        """Read the records of a response; none if the log has changed since it was made."""
        if answer.read_from is None:
            return memoryview(b"")
        size = min(max(answer.bytes_max, 0), ANSWER_BYTES_MAX)
        try:
            return self._log.local_log.read(answer.read_from, size)
        except OffsetOutOfRangeError:
            return memoryview(b"")

    def _snapshot_part(
        self, answer: core.FetchSnapshotResponse
    ) -> tuple[core.FetchSnapshotResponse, bytes]:
        """Read a part of a snapshot; return the completed response with it, or an error."""
        if answer.error is not core.Error.NONE:
            return answer, b""
        reader = self._log.snapshots.open(answer.snapshot_id)
        if reader is None:
            return _refused(answer, core.Error.SNAPSHOT_NOT_FOUND), b""
        try:
            if answer.position >= reader.size:
                return _refused(answer, core.Error.POSITION_OUT_OF_RANGE), b""
            size = min(max(answer.bytes_max, 0), ANSWER_BYTES_MAX)
            part = reader.read_at(answer.position, size)
            return (
                core.FetchSnapshotResponse(
                    error=core.Error.NONE,
                    leader=answer.leader,
                    snapshot_id=answer.snapshot_id,
                    position=answer.position,
                    size=reader.size,
                    part_size=len(part),
                ),
                part,
            )
        finally:
            reader.close()


def _answer_about_voters(
    answer: core.AddRaftVoterResponse
    | core.RemoveRaftVoterResponse
    | core.UpdateRaftVoterResponse
    | core.ApiVersionsResponse,
    *,
    listener_name: str,
) -> Message:
    match answer:
        case core.AddRaftVoterResponse():
            return add_raft_voter.write_answer(answer)
        case core.RemoveRaftVoterResponse():
            return remove_raft_voter.write_answer(answer)
        case core.UpdateRaftVoterResponse():
            return update_raft_voter.write_answer(answer, listener_name=listener_name)
        case core.ApiVersionsResponse():
            raise TypeError("the core does not answer ApiVersions")


def _refused(answer: core.FetchSnapshotResponse, error: core.Error) -> core.FetchSnapshotResponse:
    return core.FetchSnapshotResponse(
        error=error, leader=answer.leader, snapshot_id=answer.snapshot_id
    )

"""The requests of the quorum that come in: each waits for the core's response."""

from collections.abc import Callable
from dataclasses import dataclass

from kvorum.node.raft.errors import RaftStoppedError
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
from kvorum.raft.effects import SendResponse
from kvorum.storage.errors import OffsetOutOfRangeError
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from kvorum.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from kvorum.wire.messages.vote import VoteRequest
from kvorum.wire.primitives import Message

ANSWER_BYTES_MAX = 8 * 1024 * 1024
"""The maximum size of records in a response, unless a single batch is bigger."""
Respond = Callable[[Message | RaftStoppedError], None]
"""Takes the response to a request, or the reason why none comes."""


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

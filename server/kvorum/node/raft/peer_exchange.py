"""Exchanges between replicas: the core's requests and responses over any connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.raft.control_records import FetchedRecords, read_fetched
from kvorum.node.raft.peer_connection import PeerConnection
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation import (
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    vote,
)
from kvorum.node.raft.voter_requests import ask_about_voters
from kvorum.raft import messages as core
from kvorum.raft.effects import Send
from kvorum.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.vote import VoteRequest, VoteResponse


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
    match request:
        case core.VoteRequest():
            return await _ask_vote(connection, request, settings=settings)
        case core.BeginQuorumEpochRequest():
            return await _ask_begin(connection, request, settings=settings)
        case core.EndQuorumEpochRequest():
            return await _ask_end(connection, request, settings=settings)
        case core.FetchRequest():
            return await _ask_fetch(connection, request, settings=settings)
        case core.FetchSnapshotRequest():
            return await _ask_snapshot(connection, request, settings=settings)
        case core.DescribeQuorumRequest():
            raise TypeError("a replica does not send DescribeQuorum")
        case _:
            response = await ask_about_voters(connection, request, settings=settings)
            return PeerResult(response)


async def _ask_vote(
    connection: PeerConnection, request: core.VoteRequest, *, settings: RaftSettings
) -> PeerResult:
    version = connection.version_for(VoteRequest)
    if request.is_pre_vote and version < vote.PRE_VOTE_VERSION:
        raise NoCommonVersionError("the peer does not know pre-votes")
    message = vote.write_request(request, cluster_id=settings.cluster_id)
    response = await connection.request(
        message, VoteResponse, timeout_ms=settings.raft.request_timeout_ms
    )
    return PeerResult(vote.read_response(response, listener_name=settings.controller_listener))


async def _ask_begin(
    connection: PeerConnection, request: core.BeginQuorumEpochRequest, *, settings: RaftSettings
) -> PeerResult:
    message: BeginQuorumEpochRequest = begin_quorum_epoch.write_request(
        request, cluster_id=settings.cluster_id
    )
    response = await connection.request(
        message, BeginQuorumEpochResponse, timeout_ms=settings.raft.request_timeout_ms
    )
    return PeerResult(
        begin_quorum_epoch.read_response(response, listener_name=settings.controller_listener)
    )


async def _ask_end(
    connection: PeerConnection, request: core.EndQuorumEpochRequest, *, settings: RaftSettings
) -> PeerResult:
    message = end_quorum_epoch.write_request(
        request,
        cluster_id=settings.cluster_id,
        version=connection.version_for(EndQuorumEpochRequest),
    )
    response = await connection.request(
        message, EndQuorumEpochResponse, timeout_ms=settings.raft.request_timeout_ms
    )
    return PeerResult(
        end_quorum_epoch.read_response(response, listener_name=settings.controller_listener)
    )


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
    message: FetchSnapshotRequest = fetch_snapshot.write_request(
        request, cluster_id=settings.cluster_id
    )
    response = await connection.request(
        message, FetchSnapshotResponse, timeout_ms=settings.raft.request_timeout_ms
    )
    partition = fetch_snapshot.partition_of(response)
    part = b"" if partition is None else bytes(partition.unaligned_records or b"")
    return PeerResult(
        fetch_snapshot.read_response(response, listener_name=settings.controller_listener),
        snapshot_part=part,
    )


class Links(Protocol):
    """Connections to other replicas."""

    def send(self, send: Send) -> None:
        """Send a request; its result is reported once, with its number."""
        ...


Connect: TypeAlias = Callable[[Callable[[int, PeerResult], None]], Links]
"""Creates the links of a replica, given the callback for results of requests."""

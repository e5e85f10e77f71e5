"""Requests between a leader and a current or future voter, sent in a common version."""

from __future__ import annotations

from typing import TypeAlias

from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.raft.peer_connection import PeerConnection
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.raft.translation import (
    add_raft_voter,
    api_versions,
    remove_raft_voter,
    update_raft_voter,
)
from kvorum.raft import messages as core
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.messages.update_raft_voter import UpdateRaftVoterResponse

VoterRequest: TypeAlias = (
    core.AddRaftVoterRequest
    | core.RemoveRaftVoterRequest
    | core.UpdateRaftVoterRequest
    | core.ApiVersionsRequest
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
            question = api_versions.write_request()
            versions = await connection.request(
                question, ApiVersionsResponse, timeout_ms=timeout_ms
            )
            return api_versions.read_response(versions)

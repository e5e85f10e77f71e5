"""Steps as the requests that an operator would send, and what the responses say."""

from __future__ import annotations

from typing import TypeAlias

from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Reached,
    RemoveVoter,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterRequestListener,
    AddRaftVoterResponse,
)
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.uuid_text import ZERO_UUID

VoterChange: TypeAlias = AddVoter | RemoveVoter
VoterRequest: TypeAlias = AddRaftVoterRequest | RemoveRaftVoterRequest
VoterResponse: TypeAlias = AddRaftVoterResponse | RemoveRaftVoterResponse


def request_of(step: VoterChange, *, cluster_id: str) -> VoterRequest:
    """Return the request that takes a step; it is answered once the change is committed."""
    node_id, directory_id = step.key.id, step.key.directory_id or ZERO_UUID
    if isinstance(step, RemoveVoter):
        return RemoveRaftVoterRequest(cluster_id, node_id, directory_id)
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=node_id,
        voter_directory_id=directory_id,
        listeners=[
            AddRaftVoterRequestListener(one.listener, one.host, one.port)
            for one in step.registration.listeners
        ],
    )


def refusal_of(step: VoterChange, response: VoterResponse) -> Blocked | None:
    """Return why the leader has not changed the voters, None if it has."""
    return _refusal(step, response.error_code, response.error_message)


def refusal_to_clear(step: Reached, response: IncrementalAlterConfigsResponse) -> Blocked | None:
    """Return why the leader has not cleared the target voters, None if it has."""
    for one in response.responses:
        if one.error_code != ErrorCode.NONE:
            return _refusal(step, one.error_code, one.error_message)
    return None


def _refusal(step: VoterChange | Reached, code: int, text: str | None) -> Blocked | None:
    if code == ErrorCode.NONE:
        return None
    return Blocked(BlockReason.REFUSED, f"the leader refuses to {step}: {text or f'error {code}'}")

"""The steps of a reassignment as the requests that an operator would make by hand (KIP-853)."""

from __future__ import annotations

from typing import TypeAlias

from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    RemoveVoter,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterRequestListener,
    AddRaftVoterResponse,
)
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.uuid_text import ZERO_UUID

VoterChange: TypeAlias = AddVoter | RemoveVoter
VoterRequest: TypeAlias = AddRaftVoterRequest | RemoveRaftVoterRequest
VoterResponse: TypeAlias = AddRaftVoterResponse | RemoveRaftVoterResponse


def request_of(step: VoterChange, *, cluster_id: str) -> VoterRequest:
    """Return the request that takes a step; it is answered once the change is committed."""
    directory_id = step.key.directory_id or ZERO_UUID
    match step:
        case AddVoter():
            return AddRaftVoterRequest(
                cluster_id=cluster_id,
                voter_id=step.key.id,
                voter_directory_id=directory_id,
                listeners=[
                    AddRaftVoterRequestListener(one.listener, one.host, one.port)
                    for one in step.registration.listeners
                ],
            )
        case RemoveVoter():
            return RemoveRaftVoterRequest(
                cluster_id=cluster_id, voter_id=step.key.id, voter_directory_id=directory_id
            )


def refusal_of(step: VoterChange, response: VoterResponse) -> Blocked | None:
    """Return the refusal of a step, None where it is taken."""
    if response.error_code == ErrorCode.NONE:
        return None
    cause = response.error_message or f"error {response.error_code}"
    return Blocked(BlockReason.REFUSED, f"the leader refuses to {step}: {cause}")

"""Changes of the voters by hand while a reassignment of the quorum is wanted (KIP-642).

A change that leads to the target voters is welcome. One that leads away from them would be undone
by the next step, so it is refused, and the reassignment has to be cancelled or changed first. A
controller that joins by itself (``controller.quorum.auto.join.enable``) is treated like a request
by hand. No step is taken towards a value that cannot be read, so nothing has to be protected then.
"""

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.voters import (
    TargetVoters,
    readable_target_voters,
    target_voters_text,
    voter_key,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.primitives import Message


def admit(image: MetadataImage, request: Message) -> Message | None:
    """Return the refusal of a request to add or remove a voter now, None if it is let through."""
    assert isinstance(request, AddRaftVoterRequest | RemoveRaftVoterRequest)
    adds = isinstance(request, AddRaftVoterRequest)
    refusal = refusal_of_change(image, request.voter_id, request.voter_directory_id, adds=adds)
    if refusal is None:
        return None
    response = AddRaftVoterResponse if adds else RemoveRaftVoterResponse
    return response(error_code=ErrorCode.REASSIGNMENT_IN_PROGRESS, error_message=refusal)


def refusal_of_change(
    image: MetadataImage, node_id: int, directory_id: bytes, *, adds: bool
) -> str | None:
    """Return why a replica may not become a voter, or cease to be one, now; None if it may."""
    targets = readable_target_voters(image)
    if targets is None:
        return None
    is_wanted = _are_wanted(targets, node_id, directory_id)
    if is_wanted is adds:
        return None
    return (
        f"Voter {voter_key(node_id, directory_id)} is {'none' if adds else 'one'} of the target "
        f"voters {target_voters_text(targets)}, to which the quorum is being reassigned."
    )


def _are_wanted(targets: TargetVoters, node_id: int, directory_id: bytes) -> bool:
    return any(
        target.id == node_id and target.directory_id in (None, directory_id) for target in targets
    )

"""Changes of the voters by hand while a reassignment of the quorum is wanted (KIP-642).

A change that leads to the target voters is welcome. One that leads away from them would be undone
by the next step, so it is refused, and the reassignment has to be cancelled or changed first. A
controller that joins by itself (``controller.quorum.auto.join.enable``) is treated like a request
by hand. No step is taken towards a value that cannot be read, so nothing has to be protected then.
"""

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.target_voters import TargetVoters, readable_target_voters, target_voters_text
from kvorum.metadata.voter_key import voter_key


def refusal_of_adding(image: MetadataImage, node_id: int, directory_id: bytes) -> str | None:
    """Return why a replica may not become a voter now, None if it may."""
    targets = readable_target_voters(image)
    if targets is None or _are_wanted(targets, node_id, directory_id):
        return None
    return (
        f"Voter {voter_key(node_id, directory_id)} is none of the target voters "
        f"{target_voters_text(targets)}, to which the quorum is being reassigned."
    )


def refusal_of_removing(image: MetadataImage, node_id: int, directory_id: bytes) -> str | None:
    """Return why a voter may not be removed now, None if it may."""
    targets = readable_target_voters(image)
    if targets is None or not _are_wanted(targets, node_id, directory_id):
        return None
    return (
        f"Voter {voter_key(node_id, directory_id)} is one of the target voters "
        f"{target_voters_text(targets)}, to which the quorum is being reassigned."
    )


def _are_wanted(targets: TargetVoters, node_id: int, directory_id: bytes) -> bool:
    return any(
        target.id == node_id and target.directory_id in (None, directory_id) for target in targets
    )

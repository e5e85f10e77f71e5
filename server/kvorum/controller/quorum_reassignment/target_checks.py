"""Which target voters are accepted: the same rules for the API and for the configuration key."""

from __future__ import annotations

from kvorum.controller.quorum_description import QuorumDescription
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.target_voters import TargetVoters
from kvorum.metadata.voter_key import VoterKey


class RefusedTargetError(Exception):
    """The target voters are not accepted; the text says why and what to do."""


class StaticVotersError(RefusedTargetError):
    """The voters cannot change: kraft.version is 0."""


def check_targets(targets: TargetVoters, image: MetadataImage, quorum: QuorumDescription) -> None:
    """Raise `RefusedTargetError` unless the quorum can be worked towards `targets`.

    A target that is down is accepted, because it may come back: the reassignment waits for it.
    """
    if quorum.has_static_voters:
        raise StaticVotersError(
            f"The voters cannot be reassigned because kraft.version is {quorum.kraft_version}: "
            "upgrade it to 1 first."
        )
    for target in targets:
        _check_target(target, image, quorum)


def _check_target(target: VoterKey, image: MetadataImage, quorum: QuorumDescription) -> None:
    is_voter = any(state.key.id == target.id for state in quorum.voters)
    if not is_voter and target.id not in image.cluster.controllers:
        raise RefusedTargetError(
            f"Node {target.id} is neither a voter nor a registered controller."
        )
    keys = [state.key for state in quorum.replicas_of(target.id)]
    if target.directory_id is None and len(keys) > 1:
        raise RefusedTargetError(
            f"Node {target.id} has two directories: {', '.join(map(str, keys))}. Name the one "
            "that is meant."
        )

"""The target voters: checked, written, replaced, cancelled and listed (KIP-642).

AlterPartitionReassignments and ListPartitionReassignments handle the partition of the metadata log
like any other; what they would change in its registration is here the cluster's configuration
`kvorum.quorum.target.voters`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvorum.controller.quorum_description import QuorumDescription
from kvorum.controller.quorum_reassignment.next_step import assignment_of
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import RequestError
from kvorum.metadata.configs_image import CLUSTER_RESOURCE
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.metadata.voters import (
    TARGET_VOTERS,
    InvalidTargetVotersError,
    TargetVoters,
    VoterKey,
    checked_target_voters,
    readable_target_voters,
    recorded_target_voters,
    target_voters_text,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.config_record import ConfigRecord


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


@dataclass(frozen=True, slots=True)
class OngoingQuorumReassignment:
    """The ids of a reassignment as ListPartitionReassignments shows them."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def alter_target_voters(
    image: MetadataImage,
    partition_index: int,
    replicas: Sequence[int] | None,
    context: ControllerRequestContext,
) -> list[RecordAndVersion]:
    """Return the records that make `replicas` the target voters, or cancel with None.

    There are no records where the same is wanted already. Raises `RequestError`.
    """
    if partition_index != CLUSTER_METADATA_PARTITION:
        raise RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {CLUSTER_METADATA_TOPIC}:{partition_index}.",
        )
    if replicas is None:
        if recorded_target_voters(image) is None:
            raise RequestError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        return [_record(None)]
    try:
        targets = checked_target_voters(map(VoterKey, replicas))
        check_targets(targets, image, context.describe_quorum())
    except StaticVotersError as error:
        raise RequestError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
    except (InvalidTargetVotersError, RefusedTargetError) as error:
        raise RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error)) from error
    if targets == readable_target_voters(image):
        return []
    return [_record(target_voters_text(targets))]


def clear_reached_targets(image: MetadataImage, reached: str) -> list[RecordAndVersion]:
    """Return the records that clear the target voters if these are still those `reached`."""
    return [_record(None)] if recorded_target_voters(image) == reached else []


def ongoing_quorum_reassignment(
    image: MetadataImage, context: ControllerRequestContext
) -> OngoingQuorumReassignment | None:
    """Return the reassignment of the quorum, None where none is wanted.

    As with other partitions, the replicas are the present ones and those that are being added. A
    target of which no replica is known is among them by its id.
    """
    targets = readable_target_voters(image)
    if targets is None:
        return None
    quorum = context.describe_quorum()
    assignment = assignment_of(targets, quorum)
    voter_ids = [state.key.id for state in quorum.voters]
    coming = [key.id for key in assignment.new]
    adding = sorted({*coming, *(target.id for target in targets)} - ({*voter_ids} - {*coming}))
    return OngoingQuorumReassignment(
        replicas=tuple(voter_ids) + tuple(one for one in adding if one not in voter_ids),
        adding=tuple(adding),
        removing=tuple(key.id for key in assignment.leaving),
    )


def _record(value: str | None) -> RecordAndVersion:
    return ConfigRecord(*CLUSTER_RESOURCE, TARGET_VOTERS, value), 0

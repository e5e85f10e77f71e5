"""Descriptions of quorums whose voters may change."""

from collections.abc import Iterable

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.metadata.voters import VoterKey

LOG_END_OFFSET = 100


def directory(node_id: int, disk: int = 0) -> bytes:
    """The id of a node's directory on one of its disks."""
    return bytes([node_id, disk]) * 8


def key(node_id: int, disk: int = 0) -> VoterKey:
    return VoterKey(node_id, directory(node_id, disk))


def described(
    leader_id: int,
    voters: Iterable[ReplicaState],
    observers: Iterable[ReplicaState] = (),
    log_end_offset: int = LOG_END_OFFSET,
) -> QuorumDescription:
    return QuorumDescription(
        leader_id=leader_id,
        kraft_version=1,
        may_change=True,
        log_end_offset=log_end_offset,
        voters=tuple(voters),
        observers=tuple(observers),
    )

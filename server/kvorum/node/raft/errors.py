"""What asking a replica can end with."""

from __future__ import annotations


class RaftNodeError(Exception):
    """The base of everything this package raises on purpose."""


class NotLeaderError(RaftNodeError):
    """The replica does not lead the quorum in the epoch it was asked for."""

    def __init__(self, *, leader_id: int | None, epoch: int) -> None:
        leader = "nobody is known to lead" if leader_id is None else f"node {leader_id} leads"
        super().__init__(f"this node does not lead: {leader} in epoch {epoch}")
        self.leader_id = leader_id
        self.epoch = epoch


class ProposalTooLargeError(RaftNodeError):
    """The records of one proposal do not fit into one batch."""


class RaftStoppedError(RaftNodeError):
    """The replica is not running: not started, closed, or stopped by a failure."""

"""The base of all roles, and their names."""

from enum import Enum
from typing import ClassVar

from kvorum.raft.basics import ElectionRecord, Endpoints, ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.request_manager import NEVER


class RoleName(Enum):
    """The roles a replica can be in."""

    UNATTACHED = "unattached"
    FOLLOWER = "follower"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    RESIGNED = "resigned"


class Role:
    """One replica's part in one epoch. Roles hold what they know; the core moves between them."""

    name: ClassVar[RoleName]

    def __init__(
        self,
        epoch: int,
        *,
        leader_id: int | None = None,
        leader_endpoints: Endpoints = (),
        voted: ReplicaKey | None = None,
    ) -> None:
        self.epoch = epoch
        self.leader_id = leader_id
        self.leader_endpoints = leader_endpoints
        """The endpoints of the leader, as far as this role knows them."""
        self.voted = voted

    @property
    def deadline(self) -> float:
        """When this role has to act if nothing happens before."""
        return NEVER

    @property
    def election_record(self) -> ElectionRecord:
        """The record that must be durable before other nodes hear from this role."""
        return ElectionRecord(self.epoch, self.leader_id, self.voted)

    def would_grant(self, request: VoteRequest, *, is_up_to_date: bool) -> bool:
        """Return whether to give a vote, once per epoch, or a pre-vote.

        `is_up_to_date` is whether the candidate's log reaches at least as far as this replica's.
        A vote given before can only be repeated. Where a leader is known, the election is over.
        """
        if request.is_pre_vote:
            return is_up_to_date
        if self.voted is not None:
            same_directory = self.voted.directory_id in {None, request.replica.directory_id}
            return self.voted.id == request.replica.id and same_directory
        return self.leader_id is None and is_up_to_date

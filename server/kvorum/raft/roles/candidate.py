"""The candidate: a replica that asks for votes in an epoch that it has begun."""

from typing import ClassVar

from kvorum.raft.basics import ReplicaKey
from kvorum.raft.epoch_election import EpochElection
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles.role import Role, RoleName


class Candidate(Role):
    """A replica that has voted for itself; once rejected, it only waits for its deadline."""

    name: ClassVar[RoleName] = RoleName.CANDIDATE

    def __init__(
        self, epoch: int, *, own_key: ReplicaKey, tally: EpochElection, election_deadline: float
    ) -> None:
        super().__init__(epoch, voted=own_key)
        self.own_key = own_key
        self.tally = tally
        self.election_deadline = election_deadline

    @property
    def deadline(self) -> float:
        """When the election is given up."""
        return self.election_deadline

    def would_grant(self, request: VoteRequest, *, is_up_to_date: bool) -> bool:
        """Grant pre-votes only: the replica has given this epoch's vote to itself."""
        return request.is_pre_vote and is_up_to_date

"""Asks for votes in an epoch of its own."""

from __future__ import annotations

from typing import ClassVar

from kvorum.raft.basics import ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles.role import Role, RoleName
from kvorum.raft.votes import VoteTally


class Candidate(Role):
    """Has voted for itself; once rejected it only waits for its time to be over."""

    name: ClassVar[RoleName] = RoleName.CANDIDATE

    def __init__(
        self, epoch: int, *, own_key: ReplicaKey, tally: VoteTally, election_deadline: float
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
        """Give pre-votes only: the vote of this epoch is its own."""
        return request.is_pre_vote and is_up_to_date

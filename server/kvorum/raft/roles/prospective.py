"""Asks whether an election could be won, before it disturbs anyone with a new epoch (KIP-996)."""

from __future__ import annotations

from typing import ClassVar

from kvorum.raft.basics import Endpoints, ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles.role import Role, RoleName, may_vote_for
from kvorum.raft.votes import VoteTally


class Prospective(Role):
    """Collects pre-votes in an epoch that stays as it is; leader and vote are kept."""

    name: ClassVar[RoleName] = RoleName.PROSPECTIVE

    def __init__(
        self,
        epoch: int,
        *,
        tally: VoteTally,
        election_deadline: float,
        leader_id: int | None = None,
        leader_endpoints: Endpoints = (),
        voted: ReplicaKey | None = None,
    ) -> None:
        super().__init__(epoch, leader_id=leader_id, voted=voted)
        self.tally = tally
        self.election_deadline = election_deadline
        self._leader_endpoints = leader_endpoints
        self._lets_pass_until: float | None = None
        self._has_let_pass = False

    @property
    def leader_endpoints(self) -> Endpoints:
        """Where the leader listened that fell silent."""
        return self._leader_endpoints

    @property
    def deadline(self) -> float:
        """When the pre-votes are given up, or it has let another pass for long enough."""
        until = self._lets_pass_until
        return self.election_deadline if until is None else min(until, self.election_deadline)

    def let_pass(self, until: float) -> None:
        """Begin no election before `until`; that is done once, not for everyone who asks."""
        if not self._has_let_pass:
            self._has_let_pass = True
            self._lets_pass_until = until

    def lets_pass(self, now: float) -> bool:
        """Tell whether another is still being let pass."""
        if self._lets_pass_until is not None and self._lets_pass_until <= now:
            self._lets_pass_until = None
        return self._lets_pass_until is not None

    def would_grant(self, request: VoteRequest, *, is_up_to_date: bool) -> bool:
        """Tell whether to give a vote; see `may_vote_for`."""
        return may_vote_for(self, request, is_up_to_date=is_up_to_date)

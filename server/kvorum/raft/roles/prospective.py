"""The prospective replica: it asks for pre-votes before it begins a new epoch (KIP-996)."""

from typing import ClassVar

from kvorum.raft.basics import Endpoints, ReplicaKey
from kvorum.raft.epoch_election import EpochElection
from kvorum.raft.roles.role import Role, RoleName


class Prospective(Role):
    """A replica that collects pre-votes; it keeps the epoch, the leader and the vote."""

    name: ClassVar[RoleName] = RoleName.PROSPECTIVE

    def __init__(
        self,
        epoch: int,
        *,
        tally: EpochElection,
        election_deadline: float,
        leader_id: int | None = None,
        leader_endpoints: Endpoints = (),
        voted: ReplicaKey | None = None,
    ) -> None:
        super().__init__(epoch, leader_id=leader_id, leader_endpoints=leader_endpoints, voted=voted)
        self.tally = tally
        self.election_deadline = election_deadline
        self._lets_pass_until: float | None = None
        self._has_let_pass = False

    @property
    def deadline(self) -> float:
        """When the pre-votes are given up, or the wait for another nominee ends."""
        until = self._lets_pass_until
        return self.election_deadline if until is None else min(until, self.election_deadline)

    def let_pass(self, until: float) -> None:
        """Begin no election before `until`; only the first call has an effect."""
        if not self._has_let_pass:
            self._has_let_pass = True
            self._lets_pass_until = until

    def lets_pass(self, now: float) -> bool:
        """Return whether this replica still waits for another nominee."""
        if self._lets_pass_until is not None and self._lets_pass_until <= now:
            self._lets_pass_until = None
        return self._lets_pass_until is not None

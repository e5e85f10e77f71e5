"""The resigned leader: it gave up its epoch, or came back from a restart in it."""

from typing import ClassVar

from kvorum.raft.basics import ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles.role import Role, RoleName


class Resigned(Role):
    """A former leader that asks the voters to elect another one, and waits for it.

    `preferred` are the successors in order; there are none after a restart.
    """

    name: ClassVar[RoleName] = RoleName.RESIGNED

    def __init__(
        self,
        epoch: int,
        *,
        own_key: ReplicaKey,
        preferred: tuple[ReplicaKey, ...],
        unacked_ids: frozenset[int],
        election_deadline: float,
        voted: ReplicaKey | None = None,
    ) -> None:
        super().__init__(epoch, leader_id=own_key.id, voted=voted)
        self.preferred = preferred
        self.election_deadline = election_deadline
        self._unacked_ids = unacked_ids

    @property
    def deadline(self) -> float:
        """When to give up waiting, and go on in the next epoch."""
        return self.election_deadline

    @property
    def unacked_ids(self) -> tuple[int, ...]:
        """The voters that have not acknowledged the resignation, ascending."""
        return tuple(sorted(self._unacked_ids))

    def acknowledged(self, voter_id: int) -> None:
        """Note that a voter has acknowledged the resignation."""
        self._unacked_ids -= {voter_id}

    def would_grant(self, request: VoteRequest, *, is_up_to_date: bool) -> bool:
        """Grant pre-votes only: this epoch has had its leader."""
        return request.is_pre_vote and is_up_to_date

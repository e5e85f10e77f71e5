"""The unattached replica: it knows an epoch, and no leader that it could follow."""

from typing import ClassVar

from kvorum.raft.basics import ReplicaKey
from kvorum.raft.roles.role import Role, RoleName


class Unattached(Role):
    """A replica that looks for a leader; a voter begins an election at the deadline.

    The leader's id may be known without an endpoint to reach it at.
    """

    name: ClassVar[RoleName] = RoleName.UNATTACHED

    def __init__(
        self,
        epoch: int,
        *,
        election_deadline: float,
        leader_id: int | None = None,
        voted: ReplicaKey | None = None,
    ) -> None:
        super().__init__(epoch, leader_id=leader_id, voted=voted)
        self.election_deadline = election_deadline

    @property
    def deadline(self) -> float:
        """When an election begins; the core never lets an observer hold one."""
        return self.election_deadline

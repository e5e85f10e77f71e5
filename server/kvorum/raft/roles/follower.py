"""Copies the log of a leader. Observers are followers too, for good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvorum.raft.basics import Endpoints, OffsetAndEpoch, ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.peers import NEVER
from kvorum.raft.roles.role import Role, RoleName


@dataclass(slots=True)
class Download:
    """A snapshot that is fetched instead of records; `is_complete` while it is being installed."""

    snapshot_id: OffsetAndEpoch
    position: int = 0
    is_complete: bool = False


class Follower(Role):
    """Fetches from its leader; a voter begins an election when that falls silent."""

    name: ClassVar[RoleName] = RoleName.FOLLOWER

    def __init__(
        self,
        epoch: int,
        *,
        leader_id: int,
        leader_endpoints: Endpoints,
        fetch_deadline: float,
        report_deadline: float = NEVER,
        voted: ReplicaKey | None = None,
    ) -> None:
        super().__init__(epoch, leader_id=leader_id, voted=voted)
        self.following_id = leader_id
        self._leader_endpoints = leader_endpoints
        self.fetch_deadline = fetch_deadline
        self.report_deadline = report_deadline
        self.has_updated_leader = False
        self.has_fetched = False
        self.is_leader_silent = False
        self.is_leader_gone = False
        self.has_let_pass = False
        self.leader_high_watermark: int | None = None
        self.download: Download | None = None

    @property
    def leader_endpoints(self) -> Endpoints:
        """Where the leader listens."""
        return self._leader_endpoints

    @property
    def deadline(self) -> float:
        """When the leader counts as silent."""
        return self.fetch_deadline

    def would_grant(self, request: VoteRequest, *, is_up_to_date: bool) -> bool:
        """Give pre-votes only, and none once the leader has shown that it is alive."""
        return request.is_pre_vote and not self.has_fetched and is_up_to_date

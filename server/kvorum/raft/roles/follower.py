"""The follower: a replica that copies a leader's log. An observer with a leader is one too."""

from dataclasses import dataclass
from typing import ClassVar

from kvorum.raft.basics import Endpoints, ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.request_manager import NEVER
from kvorum.raft.roles.leader_contact import ContactEvent, LeaderContact, contact_after
from kvorum.raft.roles.role import Role, RoleName
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


@dataclass(slots=True)
class Download:
    """A snapshot fetched instead of records; `is_complete` while it is being installed."""

    snapshot_id: OffsetAndEpoch
    position: int = 0
    is_complete: bool = False


class Follower(Role):
    """A replica that fetches from its leader; a voter stands once the leader is silent."""

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
        super().__init__(epoch, leader_id=leader_id, leader_endpoints=leader_endpoints, voted=voted)
        self.following_id = leader_id
        self.fetch_deadline = fetch_deadline
        self.report_deadline = report_deadline
        # At kraft.version 0: the leader has this voter's report, or does not support it.
        self.has_updated_leader = False
        self.contact = LeaderContact.UNHEARD
        """The state of the contact with the leader; only `note` changes it."""
        self.leader_high_watermark: int | None = None
        self.download: Download | None = None

    def note(self, event: ContactEvent) -> None:
        """Note an event of the leader. Raises IllegalMoveError."""
        self.contact = contact_after(self.contact, event)

    @property
    def is_leader_gone(self) -> bool:
        """Whether the leader's process has ended, as far as is known."""
        return self.contact in {LeaderContact.GONE, LeaderContact.YIELDED}

    @property
    def deadline(self) -> float:
        """When the leader counts as silent."""
        return self.fetch_deadline

    def would_grant(self, request: VoteRequest, *, is_up_to_date: bool) -> bool:
        """Grant pre-votes only, and none once the leader has shown that it is alive."""
        is_alive = self.contact is LeaderContact.ALIVE
        return request.is_pre_vote and not is_alive and is_up_to_date

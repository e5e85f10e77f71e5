"""The state of one replica, and its moves from role to role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kvorum.raft.config import RaftConfig
from kvorum.raft.destination import Destination
from kvorum.raft.effects import (
    Committed,
    DropDownload,
    LeaderChanged,
    LeadershipLost,
    Outbox,
    PeerRefused,
    Send,
    WriteElection,
)
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.endpoints import Endpoints, endpoint_named
from kvorum.raft.epoch_election import EpochElection
from kvorum.raft.errors import NotLeaderError
from kvorum.raft.fetch_purgatory import FetchPurgatory
from kvorum.raft.kraft_version import KRAFT_VERSION_MAX, KRAFT_VERSION_MIN
from kvorum.raft.log_view import LogView
from kvorum.raft.messages import KnownLeader, Request, UpdateRaftVoterRequest
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.request_manager import NEVER, RequestManager
from kvorum.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    RoleName,
    Unattached,
)
from kvorum.raft.transitions import check_move
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory

if TYPE_CHECKING:
    from random import Random


@dataclass(slots=True, kw_only=True)
class AddVoterHandlerState:
    """A voter that is being added: it is asked for its kraft.versions, then written to the log.

    `record_offset` is the offset of the voter record, None before it is appended. Without
    `acks_when_committed` the response is sent when the record is appended, but the change stays
    under way until it is committed.
    """

    token: int
    key: ReplicaKey
    endpoints: Endpoints
    acks_when_committed: bool
    deadline: float
    record_offset: int | None = None
    is_answered: bool = False


@dataclass(slots=True, kw_only=True)
class RemoveVoterHandlerState:
    """A voter that is being removed by the record at `record_offset`."""

    token: int
    record_offset: int
    deadline: float


@dataclass(slots=True, kw_only=True)
class PendingUpdate:
    """A voter's update of its own entry, which is recorded once the voter has been probed."""

    token: int
    key: ReplicaKey
    request: UpdateRaftVoterRequest
    deadline: float


PendingChange: TypeAlias = AddVoterHandlerState | RemoveVoterHandlerState | PendingUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A replica's identity: its key, its endpoints, and whether it may be a voter at all.

    `listener_name` is the listener by which replicas reach each other. `bootstrap` are the servers
    to ask for the leader; servers known by address only have ids of -2 and below.
    """

    key: ReplicaKey
    endpoints: Endpoints
    listener_name: str
    can_vote: bool
    bootstrap: tuple[Destination, ...]

    @property
    def as_voter(self) -> Voter:
        """The replica's entry in a voter set."""
        return Voter(self.key, self.endpoints, KRAFT_VERSION_MIN, KRAFT_VERSION_MAX)


class Replica:
    """The state all parts of the core work on. Only `move` changes the role."""

    def __init__(
        self,
        identity: Identity,
        *,
        config: RaftConfig,
        log: LogView,
        history: VoterSetHistory,
        random: Random,
    ) -> None:
        self.own = identity
        self.config = config
        self.log = log
        self.history = history
        self.random = random
        self.outbox = Outbox()
        self.peers = RequestManager(
            request_timeout_ms=config.request_timeout_ms, retry_backoff_ms=config.retry_backoff_ms
        )
        self.parked = FetchPurgatory()
        self.high_watermark: int | None = None
        self.role: Role = Unattached(0, election_deadline=0.0)
        self.is_shutting_down = False
        # Set while a fetched snapshot replaces the log, which must not change meanwhile.
        self.is_installing = False
        # The change of the voters that this replica has under way as their leader.
        self.change: PendingChange | None = None
        # Whether a committed voter set has contained this replica since its start.
        self.has_been_voter = False
        self._written: ElectionRecord | None = None
        # The highest high watermark of any role since the start.
        self._committed_end_offset = 0

    @property
    def voters(self) -> VoterSet:
        """The voters as of the log's end."""
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        """Whether this replica takes part in elections; if not, it is an observer."""
        return self.own.can_vote and self.voters.is_voter(self.own.key)

    @property
    def may_stand(self) -> bool:
        """Whether this replica may be elected.

        A voter may. A replica that the latest voter record removes may too, until it knows that
        the record is committed. Perhaps only this replica has the record; the remaining voters
        then need its vote to elect one of themselves, and it refuses that vote because their logs
        are shorter. So it is elected by the votes of the others, commits its own removal and
        resigns (section 4.2.2 of Ongaro's thesis).

        The previous voter set must contain this replica's id and directory. The configured set
        contains ids only and does not count: the first voter record of such a quorum removes no
        voter, and a replica that it does not contain has lost the disk that it voted with.
        """
        if self.is_voter:
            return True
        is_former = self.own.can_vote and self.history.previous_voters.names(self.own.key)
        return is_former and not self._is_removal_known_to_be_committed

    @property
    def _is_removal_known_to_be_committed(self) -> bool:
        offset, snapshot = self.history.voters_offset, self.log.latest_snapshot
        is_in_snapshot = offset is not None and snapshot is not None and offset < snapshot.offset
        return is_in_snapshot or (offset is not None and offset < self._committed_end_offset)

    @property
    def is_only_voter(self) -> bool:
        """Whether this replica is a majority by itself."""
        return self.own.can_vote and self.voters.is_only_voter(self.own.key)

    @property
    def are_voters_committed(self) -> bool:
        """Whether the record that holds the current voters is committed."""
        offset, known = self.history.voters_offset, self.high_watermark
        return offset is not None and known is not None and offset < known

    def leader_in(self, epoch: int, *, action: str) -> Leader:
        """Return the role of the leader that this replica is in `epoch`.

        Raises NotLeaderError, with Kafka's text for the `action` that needs a leader.
        """
        role = self.role
        if not isinstance(role, Leader) or self.is_shutting_down:
            reason = "the replica is not the current leader"
        elif role.epoch != epoch:
            reason = f"the given epoch {epoch} is stale. Current leader epoch is {role.epoch}"
        else:
            return role
        text = f"{action} failed because {reason}"
        raise NotLeaderError(text, leader_id=role.leader_id, epoch=role.epoch)

    def known_leader(self) -> KnownLeader:
        """Return the epoch and the leader that every response contains."""
        return KnownLeader(self.role.epoch, self.role.leader_id, self.role.leader_endpoints)

    def random_election_timeout(self) -> int:
        """Draw how long to wait before an election, so that two replicas rarely begin together."""
        timeout_ms = self.config.election_timeout_ms
        return timeout_ms + self.random.randrange(timeout_ms) if timeout_ms > 0 else 1

    def begin_as(self, role: Role, *, stored: ElectionRecord | None) -> None:
        """Take the first role after a start; `stored` is the record in the directory."""
        self._written = stored
        self.role = role
        self._write_if_changed()
        self.outbox.add(LeaderChanged(role.leader_id, role.epoch))

    def move(self, role: Role, *, keeps_requests: bool = False) -> None:
        """Move to another role, or to new facts of the same one.

        The requests under way are given up, unless `keeps_requests`. Raises IllegalMoveError.
        """
        old = self.role
        check_move(
            old,
            role,
            own_id=self.own.key.id,
            may_stand=self.may_stand,
            is_only_voter=self.is_only_voter,
        )
        self.role = role
        self._write_if_changed()
        if not keeps_requests:
            self.peers.reset()
        if isinstance(old, Follower) and old.download is not None:
            self.outbox.add(DropDownload())
        if isinstance(old, Leader) and old.is_established:
            self.outbox.add(LeadershipLost(old.epoch))
        if role.name in {RoleName.LEADER, RoleName.RESIGNED}:
            self.high_watermark = None
        if (old.leader_id, old.epoch) != (role.leader_id, role.epoch):
            self.outbox.add(LeaderChanged(role.leader_id, role.epoch))

    def _write_if_changed(self) -> None:
        record = self.role.election_record
        if record != self._written:
            self._written = record
            version, voter_ids = self.history.kraft_version, self.voters.ids
            self.outbox.write(WriteElection(record, version, voter_ids))

    def become_unattached(self, now: float, epoch: int, *, leader_id: int | None = None) -> None:
        """Enter a higher epoch without a leader to follow, or leave a lost pre-vote.

        An election that was due stays due: a peer with a higher epoch must not put it off.
        """
        old = self.role
        deadline = now + self.random_election_timeout() if self.may_stand else NEVER
        match old:
            case _ if not self.may_stand:
                pass
            case Unattached() | Candidate() | Resigned():
                deadline = old.election_deadline
            case Prospective() if not old.tally.is_rejected:
                deadline = old.election_deadline
            case _:
                pass
        is_same = epoch == old.epoch
        self.move(
            Unattached(
                epoch,
                election_deadline=deadline,
                leader_id=old.leader_id if is_same else leader_id,
                voted=old.voted if is_same else None,
            )
        )

    def note_vote(self, now: float, key: ReplicaKey) -> None:
        """Give the vote of this epoch to a candidate, and put off this replica's own election."""
        old = self.role
        deadline = now + self.random_election_timeout()
        if isinstance(old, Prospective):
            role: Role = Prospective(
                old.epoch,
                tally=self.own_tally(),
                election_deadline=deadline,
                leader_id=old.leader_id,
                leader_endpoints=old.leader_endpoints,
                voted=key,
            )
        else:
            role = Unattached(
                old.epoch, election_deadline=deadline, leader_id=old.leader_id, voted=key
            )
        self.move(role, keeps_requests=True)

    def become_follower(
        self, now: float, *, epoch: int, leader_id: int, endpoints: Endpoints
    ) -> None:
        """Follow a leader."""
        is_same = epoch == self.role.epoch
        self.move(
            Follower(
                epoch,
                leader_id=leader_id,
                leader_endpoints=endpoints,
                fetch_deadline=now + self.config.fetch_timeout_ms,
                report_deadline=now + self.config.voter_update_ms,
                voted=self.role.voted if is_same else None,
            )
        )

    def become_prospective(self, now: float) -> None:
        """Begin to ask whether an election could be won."""
        old = self.role
        self.move(
            Prospective(
                old.epoch,
                tally=self.own_tally(),
                election_deadline=now + self.random_election_timeout(),
                leader_id=old.leader_id,
                leader_endpoints=old.leader_endpoints,
                voted=old.voted,
            )
        )

    def become_candidate(self, now: float) -> None:
        """Begin an election in the next epoch, voting for itself."""
        self.move(
            Candidate(
                self.role.epoch + 1,
                own_key=self.own.key,
                tally=self.own_tally(),
                election_deadline=now + self.random_election_timeout(),
            )
        )

    def become_resigned(self, now: float, *, is_shutdown: bool) -> None:
        """Give up the leadership; the preferred successors are the voters with the longest logs."""
        leader = self.role
        preferred = leader.successors(self.voters) if isinstance(leader, Leader) else ()
        wait_ms = self.config.shutdown_timeout_ms if is_shutdown else self.random_election_timeout()
        self.move(
            Resigned(
                leader.epoch,
                own_key=self.own.key,
                preferred=preferred,
                unacked_ids=frozenset(voter.key.id for voter in self.voters.others(self.own.key)),
                election_deadline=now + wait_ms,
            )
        )

    def leave_prospective(self, now: float) -> None:
        """Go back, in the same epoch, to the role in which a lost or timed out pre-vote began."""
        role = self.role
        if role.leader_id is not None and role.leader_endpoints:
            self.become_follower(
                now, epoch=role.epoch, leader_id=role.leader_id, endpoints=role.leader_endpoints
            )
        else:
            self.become_unattached(now, role.epoch)

    def own_tally(self) -> EpochElection:
        """Return the tally of an election that begins now."""
        return EpochElection(self.voters, own_key=self.own.key)

    def send(self, now: float, destination: Destination, request: Request) -> None:
        """Send a request and wait for its response."""
        self.outbox.add(Send(self.peers.sent(now, destination, request), destination, request))

    def refuse(self, now: float, destination: Destination, reason: str) -> None:
        """Back off from a peer that failed or sent an invalid response, and report it."""
        self.peers.back_off(now, destination.id)
        self.outbox.add(PeerRefused(destination, reason))

    def leader_destination(self) -> Destination | None:
        """Return where to reach the known leader."""
        role = self.role
        endpoint = endpoint_named(role.leader_endpoints, self.own.listener_name)
        if role.leader_id is None or endpoint is None:
            return None
        return Destination(role.leader_id, endpoint.host, endpoint.port)

    def voter_destination(self, voter_id: int) -> Destination | None:
        """Return where to reach a voter."""
        endpoint = self.voters.endpoint_of(voter_id, self.own.listener_name)
        return None if endpoint is None else Destination(voter_id, endpoint.host, endpoint.port)

    def raise_high_watermark(self, offset: int) -> bool:
        """Note that everything below `offset` is committed; return whether that is news."""
        if self.high_watermark is not None and offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self._committed_end_offset = max(self._committed_end_offset, offset)
        self.outbox.add(Committed(offset))
        if self.is_voter and self.are_voters_committed:
            self.has_been_voter = True
        return True

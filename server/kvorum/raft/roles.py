"""The roles of a replica, one class each.

A prospective replica asks for pre-votes before it begins a new epoch (KIP-996), a candidate for
votes in one that it has begun. A follower copies a leader's log; an observer with a leader is one
too. A leader counts how far the others are, and commits by a majority.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.endpoints import Endpoints
from kvorum.raft.epoch_election import EpochElection
from kvorum.raft.leader_contact import ContactEvent, LeaderContact, contact_after
from kvorum.raft.messages import VoteRequest
from kvorum.raft.quorum import advanced_high_watermark
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.request_manager import NEVER
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


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


@dataclass(slots=True)
class Progress:
    """A leader's knowledge of one other replica; times are those of its last valid fetches."""

    log_end_offset: int | None = None
    last_fetch: float | None = None
    last_fetch_leader_end: int = 0
    last_caught_up: float | None = None

    def fetched(self, now: float, *, offset: int, leader_end_offset: int) -> None:
        """Note that the replica fetched from `offset`: it has everything below, durably.

        A replica that has the whole log has caught up as of `now`. A replica that has the log as
        it was at its previous fetch has caught up as of that fetch.
        """
        if offset >= leader_end_offset:
            self.last_caught_up = now
        elif self.last_fetch is not None and offset >= self.last_fetch_leader_end:
            self.last_caught_up = self.last_fetch
        self.log_end_offset = offset
        self.last_fetch = now
        self.last_fetch_leader_end = leader_end_offset


class Leader(Role):
    """The leader of one epoch, whose first offset is `epoch_start_offset`."""

    name: ClassVar[RoleName] = RoleName.LEADER

    def __init__(
        self,
        epoch: int,
        *,
        own_key: ReplicaKey,
        own_endpoints: Endpoints,
        epoch_start_offset: int,
        granting_ids: tuple[int, ...],
        check_quorum_deadline: float,
    ) -> None:
        # The vote for itself need not be kept: the leader of this epoch is known for good.
        super().__init__(epoch, leader_id=own_key.id, leader_endpoints=own_endpoints)
        self.own_key = own_key
        self.epoch_start_offset = epoch_start_offset
        self.granting_ids = granting_ids
        self.check_quorum_deadline = check_quorum_deadline
        self.is_established = False
        self.progress: dict[ReplicaKey, Progress] = {}
        self.next_begin_quorum = 0.0
        # At kraft.version 0: the voters as they have reported themselves to this leader.
        self.volatile_voters: VoterSet | None = None
        self._heard_from: set[int] = set()

    def would_grant(self, request: VoteRequest, *, is_up_to_date: bool) -> bool:
        """Grant no vote: there is a leader."""
        del request, is_up_to_date
        return False

    def progress_of(self, key: ReplicaKey, voters: VoterSet) -> Progress:
        """Return a replica's progress; a voter has one entry, whichever key it fetches with."""
        voter = voters.voter_for(key)
        return self.progress.setdefault(key if voter is None else voter.key, Progress())

    def voters_changed(self, old: VoterSet, new: VoterSet) -> None:
        """Continue with another voter set; fetches of former voters do not count any more.

        The progress of a voter that had no directory id until now is kept under its new key.
        """
        self._heard_from.intersection_update(new.ids)
        for voter in old.voters:
            successor = new.by_id(voter.key.id)
            if voter.key.directory_id is None and successor is not None:
                known = self.progress.pop(voter.key, None)
                if known is not None:
                    self.progress.setdefault(successor.key, known)

    def heard_from(self, voter_id: int, *, needed: int) -> bool:
        """Note that a voter fetched; return whether `needed` voters have fetched by now.

        The count begins again each time that number is reached.
        """
        self._heard_from.add(voter_id)
        if len(self._heard_from) < needed:
            return False
        self._heard_from.clear()
        return True

    def advanced_high_watermark(
        self, voters: VoterSet, *, current: int | None, durable_end_offset: int
    ) -> int | None:
        """Return the new high watermark, or None where it stays.

        This replica counts with what it has made durable, a voter that never fetched with 0.
        """
        ends = [
            durable_end_offset
            if voter.is_replica(self.own_key)
            else self.progress.get(voter.key, Progress()).log_end_offset or 0
            for voter in voters.voters
        ]
        return advanced_high_watermark(
            current=current, end_offsets=ends, epoch_start_offset=self.epoch_start_offset
        )

    def successors(self, voters: VoterSet) -> tuple[ReplicaKey, ...]:
        """Return the other voters, the one with the longest log first."""

        def end_of(key: ReplicaKey) -> int:
            known = self.progress.get(key)
            return -1 if known is None or known.log_end_offset is None else known.log_end_offset

        keys = [voter.key for voter in voters.others(self.own_key)]
        return tuple(sorted(keys, key=end_of, reverse=True))

    def forget_silent(self, now: float, *, keep: Iterable[ReplicaKey], session_ms: int) -> None:
        """Drop observers that have not fetched for `session_ms`; those in `keep` stay."""
        kept = frozenset(keep)
        silent = [
            key
            for key, known in self.progress.items()
            if key not in kept
            and (known.last_fetch is None or now - known.last_fetch >= session_ms)
        ]
        for key in silent:
            del self.progress[key]


class Resigned(Role):
    """A former leader that asks the voters to elect another one, and waits for it.

    `preferred` are the successors in order; after a restart the tuple is empty.
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

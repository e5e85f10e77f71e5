"""The leader: it counts how far the others are, and commits by a majority."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kvorum.raft.basics import Endpoints, ReplicaKey
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles.role import Role, RoleName
from kvorum.raft.voter_set import VoterSet


def majority_offset(end_offsets: Sequence[int]) -> int:
    """Return the highest offset that a majority has reached; raise ValueError for no voters."""
    if not end_offsets:
        raise ValueError("there are no voters")
    return sorted(end_offsets, reverse=True)[len(end_offsets) // 2]


def advanced_high_watermark(
    *, current: int | None, end_offsets: Sequence[int], epoch_start_offset: int
) -> int | None:
    """Return the new high watermark, or None where it stays.

    It rises only to an offset after the first record of the leader's own epoch: committing that
    record commits the records of earlier leaders before it (section 5.4.2 of the Raft paper).
    """
    if not end_offsets:
        return None
    offset = majority_offset(end_offsets)
    if offset <= epoch_start_offset:
        return None
    return offset if current is None or offset > current else None


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

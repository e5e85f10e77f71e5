"""Replicas, the immutable set of the voters, and the arithmetic of majorities and votes over it.

The voter set and kraft.version are functions of a snapshot and a prefix of the log. A change counts
as soon as it is appended, committed or not. Because every result is computed from the log's own
contents, truncating the log also undoes the changes in the removed part.

A voter is identified by its id and its directory. A replica that has a voter's id and another
directory is not that voter: it has none of the records that the voter stored and none of its
promises, and it has no vote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kvorum.wire.offset_and_epoch import OffsetAndEpoch

KRAFT_VERSION_MIN = 0
KRAFT_VERSION_MAX = 1
"""The kraft.version levels this release can work at."""


class ReplicaKey(NamedTuple):
    """A replica: the node's id and, where it is known, the directory that holds the log."""

    id: int
    directory_id: bytes | None = None


class Endpoint(NamedTuple):
    """An address at which a node listens; `name` is the listener's name in upper case."""

    name: str
    host: str
    port: int


EPOCH_MAX = 2**31 - 2
"""The highest epoch that a replica enters because a peer names it: an election needs one more."""

Endpoints: TypeAlias = tuple[Endpoint, ...]


class Destination(NamedTuple):
    """The target of a request. Servers known by address only have ids of -2 and below."""

    id: int
    host: str
    port: int

    @property
    def is_known_by_address_only(self) -> bool:
        """Whether this is a bootstrap server: which replica it leads to is not known."""
        return self.id < 0


class ElectionRecord(NamedTuple):
    """The state that must survive a restart: the epoch, and the leader and the vote in it."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None


def endpoint_named(endpoints: Endpoints, name: str) -> Endpoint | None:
    """Return the endpoint of the listener called `name`."""
    return next((endpoint for endpoint in endpoints if endpoint.name == name), None)


class Voter(NamedTuple):
    """One voter: its key, where it listens, and the kraft.version levels it can work at."""

    key: ReplicaKey
    endpoints: Endpoints
    kraft_version_min: int = KRAFT_VERSION_MIN
    kraft_version_max: int = KRAFT_VERSION_MIN

    def is_replica(self, key: ReplicaKey) -> bool:
        """Return whether `key` is this voter; a voter without directory id matches by its id."""
        if key.id != self.key.id:
            return False
        return self.key.directory_id is None or self.key.directory_id == key.directory_id

    def says_same_as(self, other: Voter) -> bool:
        """Return whether two entries are equal, apart from the order of their endpoints."""
        same_range = (self.kraft_version_min, self.kraft_version_max) == (
            other.kraft_version_min,
            other.kraft_version_max,
        )
        same_endpoints = frozenset(self.endpoints) == frozenset(other.endpoints)
        return self.key == other.key and same_range and same_endpoints


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters at one point of the log, in order of their ids; made with `of`."""

    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        """Return the set of `voters`; raise ValueError where two have the same id."""
        ordered = tuple(sorted(voters, key=lambda voter: voter.key.id))
        if len({voter.key.id for voter in ordered}) != len(ordered):
            raise ValueError("two voters have the same id")
        return cls(ordered)

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of all voters, ascending."""
        return tuple(voter.key.id for voter in self.voters)

    @property
    def majority(self) -> int:
        """The number of voters that are a majority."""
        return len(self.voters) // 2 + 1

    def by_id(self, voter_id: int) -> Voter | None:
        """Return the voter with an id."""
        return next((voter for voter in self.voters if voter.key.id == voter_id), None)

    def voter_for(self, key: ReplicaKey) -> Voter | None:
        """Return the voter that `key` is."""
        voter = self.by_id(key.id)
        return voter if voter is not None and voter.is_replica(key) else None

    def is_voter(self, key: ReplicaKey) -> bool:
        """Return whether `key` is one of the voters."""
        return self.voter_for(key) is not None

    def names(self, key: ReplicaKey) -> bool:
        """Return whether the set contains `key` by its id and directory id, not by id alone."""
        return key.directory_id is not None and any(voter.key == key for voter in self.voters)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """Return whether `key` is the only voter."""
        return len(self.voters) == 1 and self.is_voter(key)

    def others(self, key: ReplicaKey) -> tuple[Voter, ...]:
        """Return all voters but the one that `key` is."""
        return tuple(voter for voter in self.voters if not voter.is_replica(key))

    def endpoints_of(self, voter_id: int) -> Endpoints:
        """Return a voter's endpoints; none without such a voter."""
        voter = self.by_id(voter_id)
        return () if voter is None else voter.endpoints

    def endpoint_of(self, voter_id: int, listener_name: str) -> Endpoint | None:
        """Return a voter's endpoint of the listener called `listener_name`."""
        return endpoint_named(self.endpoints_of(voter_id), listener_name)

    def with_voter(self, voter: Voter) -> VoterSet:
        """Return the set with `voter` added, or replacing the voter with the same id."""
        rest = tuple(known for known in self.voters if known.key.id != voter.key.id)
        return VoterSet.of((*rest, voter))

    def without(self, voter_id: int) -> VoterSet:
        """Return the set without the voter of an id."""
        return VoterSet(tuple(voter for voter in self.voters if voter.key.id != voter_id))

    def overlaps_safely(self, successor: VoterSet) -> bool:
        """Return whether each majority of this set shares a voter with each one of `successor`.

        This holds where at most one voter is added and at most one is removed.
        """
        mine = {voter.key for voter in self.voters}
        theirs = {voter.key for voter in successor.voters}
        return len(mine - theirs) <= 1 and len(theirs - mine) <= 1


NO_VOTERS = VoterSet()
"""The empty set, for a place that knows neither the configuration nor the log."""


class _Change(NamedTuple):
    """A control record at an offset: a new voter set, or a new kraft.version."""

    offset: int
    voters: VoterSet | None = None
    kraft_version: int | None = None


@dataclass(slots=True)
class VoterSetHistory:
    """The voters of the log and the snapshot before it; `static` counts until these hold any."""

    static: VoterSet = field(default_factory=VoterSet)
    _changes: list[_Change] = field(default_factory=list[_Change])

    def start_from_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, voters: VoterSet | None, kraft_version: int
    ) -> None:
        """Forget everything and begin with the contents of a snapshot.

        The snapshot's records get the offset right before its end: -1 for the bootstrap snapshot.
        """
        self._changes = [_Change(snapshot_id.offset - 1, voters, kraft_version)]

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        """Note a KRAFT_VOTERS record at `offset`, behind all that were noted before."""
        self._add(_Change(offset, voters=voters))

    def add_kraft_version(self, offset: int, kraft_version: int) -> None:
        """Note a KRAFT_VERSION record at `offset`, behind all that were noted before."""
        self._add(_Change(offset, kraft_version=kraft_version))

    def truncate_to(self, end_offset: int) -> None:
        """Forget the changes at `end_offset` and behind."""
        self._changes = [change for change in self._changes if change.offset < end_offset]

    @property
    def voters(self) -> VoterSet:
        """The voters as of the log's end."""
        return self.voters_at(None)

    @property
    def previous_voters(self) -> VoterSet:
        """The voters before the latest record that changed them."""
        sets = [change.voters for change in self._changes if change.voters is not None]
        return sets[-2] if len(sets) > 1 else self.static

    @property
    def kraft_version(self) -> int:
        """The kraft.version as of the log's end."""
        return self.kraft_version_at(None)

    @property
    def voters_offset(self) -> int | None:
        """The offset of the record that holds the current voters; None for the static ones."""
        offsets = [change.offset for change in self._changes if change.voters is not None]
        return offsets[-1] if offsets else None

    def voters_at(self, end_offset: int | None) -> VoterSet:
        """Return the voters of the log up to `end_offset` (None: of the whole log)."""
        for change in reversed(self._changes):
            if change.voters is not None and (end_offset is None or change.offset < end_offset):
                return change.voters
        return self.static

    def recorded_voters_at(self, end_offset: int) -> VoterSet | None:
        """Return the voters that a snapshot ending at `end_offset` holds; None for static ones."""
        for change in reversed(self._changes):
            if change.voters is not None and change.offset < end_offset:
                return change.voters
        return None

    def kraft_version_at(self, end_offset: int | None) -> int:
        """Return the kraft.version of the log up to `end_offset` (None: of the whole log)."""
        for change in reversed(self._changes):
            version = change.kraft_version
            if version is not None and (end_offset is None or change.offset < end_offset):
                return version
        return 0

    def _add(self, change: _Change) -> None:
        if self._changes and change.offset < self._changes[-1].offset:
            raise ValueError(f"a change at {change.offset}, behind {self._changes[-1].offset}")
        self._changes.append(change)


class EpochElection:
    """The votes of an election so far; the nominee's own vote is counted at once.

    A nominee that is not one of the voters has no vote of its own.
    """

    def __init__(self, voters: VoterSet, *, own_key: ReplicaKey) -> None:
        own_voter = voters.voter_for(own_key)
        self._answers: dict[ReplicaKey, bool | None] = {
            voter.key: True if voter is own_voter else None for voter in voters.voters
        }

    def record(self, voter: ReplicaKey, *, is_granted: bool) -> bool:
        """Record a voter's answer; return whether it counts: only a voter's first one does."""
        if self._answers.get(voter, is_granted) is not None:
            return False
        self._answers[voter] = is_granted
        return True

    @property
    def granted(self) -> tuple[ReplicaKey, ...]:
        """The voters that granted their vote, in order of their ids."""
        return tuple(key for key, answer in self._answers.items() if answer is True)

    @property
    def unrecorded(self) -> tuple[ReplicaKey, ...]:
        """The voters that have not answered, in order of their ids."""
        return tuple(key for key, answer in self._answers.items() if answer is None)

    @property
    def is_granted(self) -> bool:
        """Whether a majority granted its vote."""
        return len(self.granted) >= self._majority

    @property
    def is_rejected(self) -> bool:
        """Whether so many voters refused that a majority has become impossible."""
        return len(self.granted) + len(self.unrecorded) < self._majority

    @property
    def _majority(self) -> int:
        return len(self._answers) // 2 + 1

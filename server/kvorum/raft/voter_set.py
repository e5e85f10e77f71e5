"""The immutable set of the voters, and the arithmetic of majorities over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kvorum.raft.basics import Endpoint, Endpoints, ReplicaKey, endpoint_named

KRAFT_VERSION_MIN = 0
KRAFT_VERSION_MAX = 1
"""The kraft.version levels this release can work at."""


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

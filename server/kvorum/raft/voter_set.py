"""The immutable set of the voters at one point of the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kvorum.raft.endpoints import Endpoint, Endpoints, endpoint_named
from kvorum.raft.quorum import majority_of
from kvorum.raft.replica_key import ReplicaKey
from kvorum.raft.voter import Voter


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
        return majority_of(len(self.voters))

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


NO_VOTERS: Final = VoterSet()
"""The empty set, for a place that knows neither the configuration nor the log."""

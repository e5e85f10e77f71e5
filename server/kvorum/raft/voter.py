"""A voter: its key, endpoints and versions.

A voter is identified by its id and its directory. A replica that has a voter's id and another
directory is not that voter: it has none of the records that the voter stored and none of its
promises, and it has no vote.
"""

from __future__ import annotations

from typing import NamedTuple

from kvorum.raft.endpoints import Endpoints
from kvorum.raft.kraft_version import KRAFT_VERSION_MIN
from kvorum.raft.replica_key import ReplicaKey


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

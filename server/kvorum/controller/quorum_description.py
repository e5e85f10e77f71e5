"""The leader's knowledge of the quorum, as the controller sees it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from kvorum.metadata.voters import VoterKey

RECONFIGURABLE_KRAFT_VERSION: Final = 1
"""The lowest kraft.version at which the voters are in the log and can change."""


class ReplicaState(NamedTuple):
    """A replica's progress; the age of its last fetch is in milliseconds, None if it never fetched.

    `log_end_offset` is None for a replica that the leader has not heard from.
    """

    key: VoterKey
    log_end_offset: int | None
    last_fetch_age_ms: float | None

    def fetches(self, *, within_ms: float) -> bool:
        """Return whether the replica has fetched within the last `within_ms`."""
        return self.last_fetch_age_ms is not None and self.last_fetch_age_ms < within_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    """The leader's view of the quorum.

    `may_change` is true when a change of the voters can begin: the latest one is committed, and so
    is a record of the leader's own epoch. `log_end_offset` is the leader's.
    """

    leader_id: int
    kraft_version: int
    may_change: bool
    log_end_offset: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]

    @property
    def has_static_voters(self) -> bool:
        """Whether the voters cannot change, because they are not in the log."""
        return self.kraft_version < RECONFIGURABLE_KRAFT_VERSION

    def replicas_of(self, node_id: int) -> tuple[ReplicaState, ...]:
        """Return every replica that claims a node's id, voters first."""
        return tuple(one for one in (*self.voters, *self.observers) if one.key.id == node_id)

    def without_superseded(self, *, within_ms: float) -> QuorumDescription:
        """Return the description without the observers that their nodes have given up.

        A node whose disk was replaced is known with both directories for some minutes. The former
        one does not fetch any more, and no request can mean it while the other one, or the leader
        with that id, does. A voter stays, because it counts for majorities.
        """
        live = {
            one.key.id
            for one in (*self.voters, *self.observers)
            if one.fetches(within_ms=within_ms)
        }
        live.add(self.leader_id)
        observers = tuple(
            one
            for one in self.observers
            if one.key.id not in live or one.fetches(within_ms=within_ms)
        )
        # A description that loses no replica stays the same one: NO_QUORUM is known by identity.
        return self if observers == self.observers else replace(self, observers=observers)


NO_QUORUM: Final = QuorumDescription(
    leader_id=-1, kraft_version=0, may_change=False, log_end_offset=0, voters=(), observers=()
)
"""The description that a replica can give that does not lead."""

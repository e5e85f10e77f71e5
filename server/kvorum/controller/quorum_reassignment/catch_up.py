"""The distance of the targets that are not voters yet, in rounds of replication.

A round (section 4.2.1 of Ongaro's thesis, and KIP-642's "Observer Promotion") begins with the end
of the leader's log as it is then, and ends when the replica has everything below. A replica whose
last round took less than an election timeout is close enough: when it becomes a voter, the commits
that need it wait no longer than that.

Progress is followed only while a reassignment is under way.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.metadata.voter_key import VoterKey


@dataclass(slots=True)
class Round:
    """The round of one replica that is under way, and how long the one before it took."""

    number: int
    end_offset: int
    started_ms: float
    last_duration_ms: float | None = None


class CatchUp:
    """The rounds of the replicas that are to become voters."""

    def __init__(self, *, election_timeout_ms: float) -> None:
        self._election_timeout_ms = election_timeout_ms
        self._rounds: dict[VoterKey, Round] = {}

    def observe(
        self, quorum: QuorumDescription, followed: Collection[VoterKey], now_ms: float
    ) -> None:
        """Take in where the `followed` replicas are now; forget all others."""
        states = {state.key: state for state in (*quorum.voters, *quorum.observers)}
        for key in set(self._rounds) - set(followed):
            del self._rounds[key]
        for key in followed:
            state = states.get(key)
            if state is None or state.log_end_offset is None:
                self._rounds.pop(key, None)
                continue
            self._observe_one(state, state.log_end_offset, quorum.log_end_offset, now_ms)

    def _observe_one(
        self, state: ReplicaState, log_end_offset: int, leader_end_offset: int, now_ms: float
    ) -> None:
        known = self._rounds.get(state.key)
        if known is None:
            self._rounds[state.key] = Round(1, leader_end_offset, now_ms)
            known = self._rounds[state.key]
        if log_end_offset < known.end_offset:
            return
        # The time of the fetch counts, not the time at which it was looked at.
        fetched_ms = now_ms - (state.last_fetch_age_ms or 0)
        duration_ms = max(fetched_ms - known.started_ms, 0)
        self._rounds[state.key] = Round(
            known.number + 1, leader_end_offset, now_ms, last_duration_ms=duration_ms
        )

    def has_caught_up(self, key: VoterKey, now_ms: float) -> bool:
        """Return whether a replica is close enough to the end of the log to become a voter."""
        known = self._rounds.get(key)
        if known is None or known.last_duration_ms is None:
            return False
        return (
            known.last_duration_ms < self._election_timeout_ms
            and now_ms - known.started_ms < self._election_timeout_ms
        )

    def describe(self, key: VoterKey, now_ms: float) -> str:
        """Return how far a replica is, in words for an operator."""
        known = self._rounds.get(key)
        if known is None:
            return "it does not fetch"
        since_ms = round(now_ms - known.started_ms)
        return f"round {known.number} of its replication takes {since_ms} ms so far"

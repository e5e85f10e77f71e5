"""Fetches that found nothing new and wait for it, each until its deadline."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.raft.messages import FetchRequest
from kvorum.raft.peers import NEVER


class ParkedFetch(NamedTuple):
    """A fetch, the token to answer it under, and until when it may wait."""

    token: int
    request: FetchRequest
    deadline: float


class ParkedFetches:
    """All waiting fetches, in the order in which they came."""

    def __init__(self) -> None:
        self._parked: dict[int, ParkedFetch] = {}

    def park(self, token: int, request: FetchRequest, *, deadline: float) -> None:
        """Let a fetch wait."""
        self._parked[token] = ParkedFetch(token, request, deadline)

    def forget(self, token: int) -> None:
        """Drop a fetch that nobody waits for any more."""
        self._parked.pop(token, None)

    def take_all(self) -> list[ParkedFetch]:
        """Take every fetch, to be looked at anew."""
        taken = list(self._parked.values())
        self._parked.clear()
        return taken

    def take_reached_by(self, end_offset: int) -> list[ParkedFetch]:
        """Take the fetches for which there are records, now that the log ends at `end_offset`."""
        return self._take(
            [fetch for fetch in self._parked.values() if fetch.request.position.offset < end_offset]
        )

    def take_expired(self, now: float) -> list[ParkedFetch]:
        """Take the fetches that have waited long enough."""
        return self._take([fetch for fetch in self._parked.values() if fetch.deadline <= now])

    @property
    def deadline(self) -> float:
        """When the next fetch has waited long enough."""
        return min((fetch.deadline for fetch in self._parked.values()), default=NEVER)

    def _take(self, fetches: list[ParkedFetch]) -> list[ParkedFetch]:
        for fetch in fetches:
            del self._parked[fetch.token]
        return fetches

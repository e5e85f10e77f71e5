"""The fetches that found nothing new and wait for it, each until its deadline."""

from typing import NamedTuple

from kvorum.raft.messages import FetchRequest
from kvorum.raft.request_manager import NEVER


class DelayedFetch(NamedTuple):
    """A waiting fetch: the token of its response, the request, and when the wait ends."""

    token: int
    request: FetchRequest
    deadline: float


class FetchPurgatory:
    """All waiting fetches, in the order in which they came."""

    def __init__(self) -> None:
        self._parked: dict[int, DelayedFetch] = {}

    def park(self, token: int, request: FetchRequest, *, deadline: float) -> None:
        """Add a waiting fetch."""
        self._parked[token] = DelayedFetch(token, request, deadline)

    def forget(self, token: int) -> None:
        """Drop a fetch whose client has gone."""
        self._parked.pop(token, None)

    def take_all(self) -> list[DelayedFetch]:
        """Take all waiting fetches."""
        taken = list(self._parked.values())
        self._parked.clear()
        return taken

    def take_reached_by(self, end_offset: int) -> list[DelayedFetch]:
        """Take the fetches for which there are records, now that the log ends at `end_offset`."""
        return self._take(
            [fetch for fetch in self._parked.values() if fetch.request.position.offset < end_offset]
        )

    def take_expired(self, now: float) -> list[DelayedFetch]:
        """Take the fetches that have waited long enough."""
        return self._take([fetch for fetch in self._parked.values() if fetch.deadline <= now])

    @property
    def deadline(self) -> float:
        """When the next fetch has waited long enough."""
        return min((fetch.deadline for fetch in self._parked.values()), default=NEVER)

    def _take(self, fetches: list[DelayedFetch]) -> list[DelayedFetch]:
        for fetch in fetches:
            del self._parked[fetch.token]
        return fetches

"""The progress of a follower, as the leader knows it from the follower's fetches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

UNKNOWN_OFFSET: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFetch:
    """The fields of a follower's fetch that the leader needs.

    `offset` is the follower's log end offset; `broker_epoch` is -1 for a follower that does not
    send it. `leader_epoch` is -1 in a request that leaves it out.
    """

    broker_id: int
    broker_epoch: int
    leader_epoch: int
    offset: int
    log_start_offset: int = UNKNOWN_OFFSET


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaProgress:
    """The log end offset of a follower, and the time when it was last caught up.

    `leader_end_offset_at_fetch` is the leader's log end offset at the last fetch: a follower that
    has reached it by its next fetch was caught up at the time of the last one.
    """

    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    leader_end_offset_at_fetch: int = 0
    last_fetch_ms: float = 0.0
    last_caught_up_ms: float = 0.0
    broker_epoch: int | None = None

    def after_fetch(
        self, fetch: FollowerFetch, *, leader_end_offset: int, now_ms: float
    ) -> ReplicaProgress:
        """Return the progress after a fetch; `leader_end_offset` is the leader's log end offset."""
        caught_up_ms = self.last_caught_up_ms
        if fetch.offset >= leader_end_offset:
            caught_up_ms = max(caught_up_ms, now_ms)
        elif fetch.offset >= self.leader_end_offset_at_fetch:
            caught_up_ms = max(caught_up_ms, self.last_fetch_ms)
        return ReplicaProgress(
            log_end_offset=fetch.offset,
            log_start_offset=fetch.log_start_offset,
            leader_end_offset_at_fetch=max(leader_end_offset, self.leader_end_offset_at_fetch),
            last_fetch_ms=now_ms,
            last_caught_up_ms=caught_up_ms,
            broker_epoch=fetch.broker_epoch,
        )

    def in_new_term(
        self, *, leader_end_offset: int, is_in_sync: bool, now_ms: float
    ) -> ReplicaProgress:
        """Return the progress when the same leader begins a new leader epoch."""
        since_ms = now_ms if is_in_sync else 0.0
        return replace(
            self,
            leader_end_offset_at_fetch=leader_end_offset,
            last_fetch_ms=since_ms,
            last_caught_up_ms=since_ms,
        )

    def is_caught_up(self, *, leader_end_offset: int, now_ms: float, lag_max_ms: float) -> bool:
        """Return whether the follower is caught up, or was so within the allowed lag."""
        return (
            self.log_end_offset == leader_end_offset
            or now_ms - self.last_caught_up_ms <= lag_max_ms
        )


def unheard_of(*, is_in_sync: bool, now_ms: float) -> ReplicaProgress:
    """Return the initial progress of a follower; one in the ISR counts as caught up just now."""
    return ReplicaProgress(
        leader_end_offset_at_fetch=UNKNOWN_OFFSET, last_caught_up_ms=now_ms if is_in_sync else 0.0
    )

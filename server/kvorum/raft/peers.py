"""Which destination may be sent to: one request at a time, and a pause after a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kvorum.raft.basics import Destination
from kvorum.raft.messages import Request

NEVER = float("inf")
SILENCE_REQUEST_TIMEOUTS = 5
"""For how many request timeouts others are asked rather than who did not answer one."""


class Sent(NamedTuple):
    """A request that waits for its response."""

    destination: Destination
    request: Request


@dataclass(slots=True)
class _Waiting:
    """A destination with a request under way, until the deadline."""

    number: int
    sent: Sent
    deadline: float


class Peers:
    """The state of all destinations; ready is who is not mentioned."""

    def __init__(self, *, request_timeout_ms: int, retry_backoff_ms: int) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._waiting: dict[int, _Waiting] = {}
        self._backing_off: dict[int, float] = {}
        self._silent_until: dict[int, float] = {}
        self._next_number = 1

    def is_ready(self, destination_id: int) -> bool:
        """Tell whether a request may go out."""
        return destination_id not in self._waiting and destination_id not in self._backing_off

    def is_backing_off(self, destination_id: int) -> bool:
        """Tell whether a request failed just now."""
        return destination_id in self._backing_off

    def is_silent(self, now: float, destination_id: int) -> bool:
        """Tell whether a request was not answered in time, and none was answered since.

        This is forgotten after a while: it may be the only one who knows the leader.
        """
        return self._silent_until.get(destination_id, now) > now

    @property
    def is_any_waiting(self) -> bool:
        """Whether a request is under way to anyone."""
        return bool(self._waiting)

    def sent(self, now: float, destination: Destination, request: Request) -> int:
        """Note that a request goes out; return the number its response will come under."""
        number = self._next_number
        self._next_number += 1
        deadline = now + self._request_timeout_ms
        self._waiting[destination.id] = _Waiting(number, Sent(destination, request), deadline)
        return number

    def answered(self, now: float, number: int, *, is_failure: bool = False) -> Sent | None:
        """Take the request that a response belongs to; None if nobody waits for it any more.

        A failure that was long in coming is silence as well: whoever sends requests gives them up
        at about the same time as is done here.
        """
        for destination_id, waiting in self._waiting.items():
            if waiting.number == number:
                del self._waiting[destination_id]
                if not is_failure:
                    self._silent_until.pop(destination_id, None)
                elif now >= waiting.deadline - self._request_timeout_ms / 2:
                    self._note_silence(now, destination_id)
                return waiting.sent
        return None

    def back_off(self, now: float, destination_id: int) -> None:
        """Leave a destination alone for a while."""
        self._backing_off[destination_id] = now + self._retry_backoff_ms

    def expire(self, now: float) -> None:
        """Give up requests whose time is over, and end pauses that are."""
        for destination_id, until in list(self._backing_off.items()):
            if until <= now:
                del self._backing_off[destination_id]
        for destination_id, waiting in list(self._waiting.items()):
            if waiting.deadline <= now:
                del self._waiting[destination_id]
                self.back_off(now, destination_id)
                self._note_silence(now, destination_id)

    def _note_silence(self, now: float, destination_id: int) -> None:
        silence_ms = SILENCE_REQUEST_TIMEOUTS * self._request_timeout_ms
        self._silent_until[destination_id] = now + silence_ms

    def reset(self) -> None:
        """Forget every request and pause, as after a change of role or epoch; not who is silent."""
        self._waiting.clear()
        self._backing_off.clear()

    @property
    def deadline(self) -> float:
        """When `expire` has something to do next."""
        waiting = (entry.deadline for entry in self._waiting.values())
        return min((*waiting, *self._backing_off.values()), default=NEVER)

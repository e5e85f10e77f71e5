"""Which destination may be sent to: one request at a time, and a pause after a failure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kvorum.raft.basics import Destination
from kvorum.raft.messages import Request

NEVER = float("inf")


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
        # Who did not answer in time the last time, longest ago first.
        self._silent: dict[int, None] = {}
        self._asked: set[int] = set()
        self._next_number = 1

    def is_ready(self, destination_id: int) -> bool:
        """Tell whether a request may go out."""
        return destination_id not in self._waiting and destination_id not in self._backing_off

    def is_backing_off(self, destination_id: int) -> bool:
        """Tell whether a request failed just now."""
        return destination_id in self._backing_off

    @property
    def silent_ids(self) -> tuple[int, ...]:
        """Who did not answer a request in time, and none since; whose turn it is comes first."""
        return tuple(self._silent)

    def was_asked(self, destination_id: int) -> bool:
        """Tell whether a request went out since the last `begin_round`."""
        return destination_id in self._asked

    def begin_round(self) -> None:
        """Count from now on who was asked."""
        self._asked.clear()

    @property
    def is_any_waiting(self) -> bool:
        """Whether a request is under way to anyone."""
        return bool(self._waiting)

    def sent(self, now: float, destination: Destination, request: Request) -> int:
        """Note that a request goes out; return the number its response will come under."""
        number = self._next_number
        self._next_number += 1
        self._asked.add(destination.id)
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
                    self._silent.pop(destination_id, None)
                elif now >= waiting.deadline - self._request_timeout_ms / 2:
                    self._note_silence(destination_id)
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
                self._note_silence(destination_id)

    def _note_silence(self, destination_id: int) -> None:
        self._silent.pop(destination_id, None)
        self._silent[destination_id] = None

    def reset(self) -> None:
        """Forget every request and pause, as after a change of role or epoch; not who is silent."""
        self._waiting.clear()
        self._backing_off.clear()
        self._asked.clear()

    @property
    def deadline(self) -> float:
        """When `expire` has something to do next."""
        waiting = (entry.deadline for entry in self._waiting.values())
        return min((*waiting, *self._backing_off.values()), default=NEVER)

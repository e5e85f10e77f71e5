"""The requests under way per destination: one at a time, and a pause after a failure."""

from dataclasses import dataclass
from typing import NamedTuple

from kvorum.raft.destination import Destination
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


class RequestManager:
    """The state of all destinations; a destination without an entry is ready for a request."""

    def __init__(self, *, request_timeout_ms: int, retry_backoff_ms: int) -> None:
        self._request_timeout_ms = request_timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._waiting: dict[int, _Waiting] = {}
        self._backing_off: dict[int, float] = {}
        # The destinations whose last request timed out; the longest silent one comes first.
        self._silent: dict[int, None] = {}
        self._asked: set[int] = set()
        self._next_number = 1

    def is_ready(self, destination_id: int) -> bool:
        """Return whether a request may be sent to a destination."""
        return destination_id not in self._waiting and destination_id not in self._backing_off

    def is_backing_off(self, destination_id: int) -> bool:
        """Return whether a destination is in the pause after a failed request."""
        return destination_id in self._backing_off

    @property
    def silent_ids(self) -> tuple[int, ...]:
        """The destinations whose last request timed out, in the order to try them again."""
        return tuple(self._silent)

    def was_asked(self, destination_id: int) -> bool:
        """Return whether a request was sent to a destination since the last `begin_round`."""
        return destination_id in self._asked

    def begin_round(self) -> None:
        """Begin a new round, in which no destination has been asked yet."""
        self._asked.clear()

    @property
    def is_any_waiting(self) -> bool:
        """Whether a request is under way to any destination."""
        return bool(self._waiting)

    def sent(self, now: float, destination: Destination, request: Request) -> int:
        """Note that a request is sent; return the number under which its response comes."""
        number = self._next_number
        self._next_number += 1
        self._asked.add(destination.id)
        deadline = now + self._request_timeout_ms
        self._waiting[destination.id] = _Waiting(number, Sent(destination, request), deadline)
        return number

    def answered(self, now: float, number: int, *, is_failure: bool = False) -> Sent | None:
        """Take the request that a response belongs to; None if it has been given up.

        A failure that comes late counts as silence as well: the sender of the requests gives them
        up at about the same time as `expire` does.
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
        """Begin a pause in which a destination gets no request."""
        self._backing_off[destination_id] = now + self._retry_backoff_ms

    def expire(self, now: float) -> None:
        """Give up the requests whose time is over, and end the pauses that are over."""
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
        """Forget every request and pause, as after a change of role or epoch, not silence."""
        self._waiting.clear()
        self._backing_off.clear()
        self._asked.clear()

    @property
    def deadline(self) -> float:
        """When `expire` has something to do next."""
        waiting = (entry.deadline for entry in self._waiting.values())
        return min((*waiting, *self._backing_off.values()), default=NEVER)

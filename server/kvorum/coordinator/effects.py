"""The effects of a shard besides its records: timers, and promises that are kept."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Response = TypeVar("Response")


@dataclass(slots=True, eq=False)
class Promise(Generic[Response]):
    """The answer of one request, which may come from a later result; `then` takes it.

    A promise that a shard has replaced by another one is never kept.
    """

    then: Callable[[Response], None]
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Answer(Generic[Response]):
    """A response that may be sent."""

    promise: Promise[Response]
    response: Response

    def send(self) -> None:
        """Hand the response to the one who waits for it."""
        self.promise.then(self.response)


class Timeout(Protocol):
    """The reason for a timer: a value that a shard gets back when the timer fires."""

    @property
    def key(self) -> str:
        """The key by which the timer is set, replaced and cancelled; a shard has each key once."""
        ...


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Hand `timeout` to the shard after `delay_ms`.

    A timer with the same key is replaced, or with `keeps_present` stays as it is. One that
    `is_retried` is set again, for a short time, where the records of its result are not committed.
    """

    timeout: Timeout
    delay_ms: int
    keeps_present: bool = False
    is_retried: bool = False


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Drop the timer with this key, if there is one."""

    key: str


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects that are due at once, in this order."""

    timers: tuple[SetTimer | CancelTimer, ...] = ()
    answers: tuple[Answer[Any], ...] = ()


@dataclass(slots=True)
class Outbox:
    """Gathers the effects of one call."""

    _timers: list[SetTimer | CancelTimer] = field(default_factory=list[SetTimer | CancelTimer])
    _answers: list[Answer[Any]] = field(default_factory=list[Answer[Any]])

    def set_timer(self, timeout: Timeout, delay_ms: int, *, is_retried: bool = False) -> None:
        """Set or replace a timer."""
        self._timers.append(SetTimer(timeout, delay_ms, is_retried=is_retried))

    def set_timer_if_absent(self, timeout: Timeout, delay_ms: int) -> None:
        """Set a timer, one that is retried, unless there is one with its key."""
        self._timers.append(SetTimer(timeout, delay_ms, keeps_present=True, is_retried=True))

    def cancel_timer(self, key: str) -> None:
        """Cancel a timer, which may not be there."""
        self._timers.append(CancelTimer(key))

    def answer(self, promise: Promise[Response], response: Response) -> None:
        """Keep a promise, unless it has been kept."""
        if not promise.is_kept:
            promise.is_kept = True
            self._answers.append(Answer(promise, response))

    def take(self) -> Effects:
        """Return what was gathered, and begin again."""
        effects = Effects(tuple(self._timers), tuple(self._answers))
        self._timers.clear()
        self._answers.clear()
        return effects

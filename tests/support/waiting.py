"""The one way to wait: for a named state, asked for again and again, with one patience for all.

A test that waits names the state and hands in what it asks. When patience is at its end, the error
says what was found instead: the last answer or error, and what `otherwise` adds (log lines, say).
A machine that is busier than most takes KVORUM_TEST_PATIENCE=3, which triples every wait. Threads
that a test starts are waited for as well, and a clock stands where a test puts it.
"""

import asyncio
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeGuard, TypeVar, cast

from kvorum.node.clock import Clock

PATIENCE_S: Final = 60.0 * float(os.environ.get("KVORUM_TEST_PATIENCE", "1"))
"""The patience for a state: far longer than it ever takes where nothing is wrong."""
POLL_INTERVAL_S: Final = 0.02
"""The pause before a state that is not reported is asked for again."""
Errors = tuple[type[BaseException], ...]
_Found = TypeVar("_Found")


class NeverCameAboutError(AssertionError):
    """The state that a test waited for did not come about."""


def wait_for(
    look: Callable[[], _Found | None],
    state: str,
    *,
    not_yet: Errors = (),
    otherwise: Callable[[], object] | None = None,
    patience_s: float = PATIENCE_S,
) -> _Found:
    """Return the first answer of `look` that is something: a number, even 0, or what is not empty.

    An error of a type in `not_yet` counts as None. Raises NeverCameAboutError.
    """
    deadline = time.monotonic() + patience_s
    while True:
        last: object
        try:
            last = found = look()
        except not_yet as error:
            last, found = error, None
        if _is_something(found):
            return found
        if time.monotonic() > deadline:
            raise NeverCameAboutError(_complaint(state, last, otherwise, patience_s))
        time.sleep(POLL_INTERVAL_S)


async def wait_for_async(
    look: Callable[[], _Found | Awaitable[_Found | None] | None],
    state: str,
    *,
    otherwise: Callable[[], object] | None = None,
) -> _Found:
    """Do the same in an event loop, which goes on meanwhile; `look` may be a coroutine function."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        asked = look()
        if inspect.isawaitable(asked):
            found = await cast("Awaitable[_Found | None]", asked)
        else:
            found = asked
        if _is_something(found):
            return found
        if time.monotonic() > deadline:
            raise NeverCameAboutError(_complaint(state, found, otherwise, PATIENCE_S))
        await asyncio.sleep(POLL_INTERVAL_S)


def wait_for_change(
    changed: threading.Condition,
    look: Callable[[], _Found | None],
    state: str,
    *,
    otherwise: Callable[[], object] | None = None,
    patience_s: float = PATIENCE_S,
) -> _Found:
    """Do the same without asking in vain: `changed` is notified by the thread that makes the state.

    `look` is called with the condition held.
    """
    deadline = time.monotonic() + patience_s
    with changed:
        while not _is_something(found := look()):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            changed.wait(left_s)
        else:
            return found
    raise NeverCameAboutError(_complaint(state, found, otherwise, patience_s))


async def wait_for_event(
    changed: asyncio.Event,
    look: Callable[[], _Found | None],
    state: str,
    *,
    otherwise: Callable[[], object] | None = None,
    patience_s: float = PATIENCE_S,
) -> _Found:
    """Do the same in an event loop: `changed` is set by the code that makes the state."""
    patience = asyncio.timeout(patience_s)
    try:
        async with patience:
            while not _is_something(found := look()):
                changed.clear()
                await changed.wait()
            return found
    except TimeoutError:
        if not patience.expired():
            raise
        raise NeverCameAboutError(_complaint(state, look(), otherwise, patience_s)) from None


def _is_something(found: _Found | None) -> TypeGuard[_Found]:
    return bool(found) or (found == 0 and found is not False)


def _complaint(
    state: str, last: object, otherwise: Callable[[], object] | None, patience_s: float
) -> str:
    told = f"after {patience_s:g} s still not so: {state}; the last answer: {last!r}"
    return told if otherwise is None else f"{told}\n{otherwise()}"


_Answer = TypeVar("_Answer")


def asked_until(
    ask: Callable[[], _Answer], is_so: Callable[[_Answer], bool], state: str
) -> _Answer:
    """Return the first answer that is so; if none ever is, the last one, for a test to show."""
    answers: list[_Answer] = []

    def look() -> bool:
        answers[:] = [ask()]
        return is_so(answers[0])

    with suppress(NeverCameAboutError):
        wait_for(look, state)
    return answers[0]


def are_alike(answers: tuple[object, object]) -> bool:
    """Tell whether both sides gave the same answer."""
    return answers[0] == answers[1]


TURNS = 50


async def let_others_run() -> None:
    """Give every task that is ready its turns, and what comes of them theirs.

    What is still not so afterwards waits for something else.
    """
    for _ in range(TURNS):
        await asyncio.sleep(0)


class Threads:
    """Threads of a test, none of which keeps the run from its end."""

    def __init__(self) -> None:
        self.patience_s = PATIENCE_S
        self._threads: list[threading.Thread] = []

    def start(self, work: Callable[..., object], *arguments: object) -> None:
        """Do something in a thread of its own; an error in it is pytest's to report."""
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    @property
    def are_alive(self) -> bool:
        """Whether one has not ended."""
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        """Wait until all have ended."""
        for thread in self._threads:
            thread.join(self.patience_s)
            assert not thread.is_alive(), f"a thread does not end: {thread.name}"


class StandingClock(Clock):
    """A clock that stands where it is put."""

    now_ms = 0.0

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return int(self.now_ms)

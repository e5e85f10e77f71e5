"""Questions that are put again and again: a change shows a moment after it is made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tests.support.waiting import NeverCameAboutError, wait_for

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

"""The moments of a reassignment's steps, and the crashes that wait for one of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class StepMoment(Enum):
    """A moment at which a leader may crash that works towards other voters."""

    ADDITION_WRITTEN = "a new voter is in its log"
    ADDITION_COMMITTED = "a new voter is committed"
    REMOVAL_WRITTEN = "a removal is in its log"
    REMOVAL_COMMITTED = "a removal is committed"
    HANDED_OVER = "it has resigned"
    TARGETS_CLEARED = "the end of the target voters is in its log"


@dataclass(frozen=True, slots=True)
class StepCrash:
    """A crash of the leader that reaches a moment, and the time until it starts again."""

    moment: StepMoment
    is_power_cut: bool
    restart_ms: float


class StepCrashes:
    """The crashes of a world that wait for their moments."""

    def __init__(self) -> None:
        self._waiting: list[StepCrash] = []

    def add(self, crash: StepCrash) -> None:
        """Let the next leader crash that reaches the moment."""
        self._waiting.append(crash)

    def take(self, moment: StepMoment) -> StepCrash | None:
        """Return a crash that waits for a moment, which waits no longer; None without one."""
        found = next((crash for crash in self._waiting if crash.moment is moment), None)
        if found is not None:
            self._waiting.remove(found)
        return found

    def forget(self) -> None:
        """Let no process crash any more."""
        self._waiting.clear()

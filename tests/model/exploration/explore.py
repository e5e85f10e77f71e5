"""Exhausting a state space, breadth first, so that a counterexample is as short as can be."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.model.exploration.actions import Label, state_after_prologue, steps
from tests.model.exploration.design import CORRECT, Bounds, Design
from tests.model.exploration.invariants import STATE_INVARIANTS, STEP_INVARIANTS
from tests.model.exploration.state import State
from tests.model.exploration.symmetry import canonical


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold, and the shortest way there."""

    invariant: str
    way: tuple[tuple[Label, State], ...]


@dataclass(slots=True)
class Explored:
    """The outcome of an exploration; `is_exhausted` is whether it saw everything there is."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    is_exhausted: bool = False
    broken: Broken | None = None
    actions: set[str] = field(default_factory=set[str])


class Explorer:
    """One exploration of a design within bounds; states are remembered by their hash."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        design: Design = CORRECT,
        invariants: Iterable[str] | None = None,
        states_max: int | None = None,
    ) -> None:
        wanted = {*STATE_INVARIANTS, *STEP_INVARIANTS} if invariants is None else set(invariants)
        self._bounds, self._design, self._states_max = bounds, design, states_max
        self._state_checks = [item for item in STATE_INVARIANTS.items() if item[0] in wanted]
        self._step_checks = [item for item in STEP_INVARIANTS.items() if item[0] in wanted]
        self._parents: dict[int, int | None] = {}
        self._met: set[int] = set()
        self.found = Explored()

    def run(self) -> Explored:
        """Explore until everything was seen, an invariant breaks, or there are too many states."""
        first = canonical(state_after_prologue(self._design, self._bounds))
        self._parents[hash(first)] = None
        level = deque([first])
        while level and self.found.broken is None:
            level = self._next_level(level)
            self.found.depth += bool(level)
            if self._states_max is not None and len(self._parents) > self._states_max:
                break
        self.found.states = len(self._parents)
        self.found.is_exhausted = not level and self.found.broken is None
        return self.found

    def _next_level(self, level: deque[State]) -> deque[State]:
        following: deque[State] = deque()
        for state in level:
            for label, after in steps(self._design, self._bounds, state):
                self.found.transitions += 1
                if after == state:
                    continue
                self.found.actions.add(str(label[0]))
                broken = self._broken_step(state, label, after)
                known = self._if_new(after)
                if known is not None:
                    self._parents[hash(known)] = hash(state)
                    following.append(known)
                    broken = broken or self._broken_state(known)
                if broken is not None:
                    self.found.broken = Broken(broken, self._way(hash(state), (label, after)))
                    return following
        return following

    def _if_new(self, state: State) -> State | None:
        """Return what stands for a state, unless that was met before."""
        if hash(state) in self._met:
            return None
        self._met.add(hash(state))
        known = canonical(state)
        return None if hash(known) in self._parents else known

    def _broken_state(self, state: State) -> str | None:
        return next((name for name, holds in self._state_checks if not holds(state)), None)

    def _broken_step(self, before: State, label: Label, after: State) -> str | None:
        checks = self._step_checks
        return next((name for name, holds in checks if not holds(before, label, after)), None)

    def _way(self, key: int, last: tuple[Label, State]) -> tuple[tuple[Label, State], ...]:
        """Return the steps to a state, without renaming, and one more."""
        keys: list[int] = []
        at: int | None = key
        while at is not None:
            keys.append(at)
            at = self._parents[at]
        keys.reverse()
        keys.append(hash(canonical(last[1])))
        way: list[tuple[Label, State]] = [
            (("begins",), state_after_prologue(self._design, self._bounds))
        ]
        for wanted in keys[1:]:
            way.append(
                next(
                    (label, after)
                    for label, after in steps(self._design, self._bounds, way[-1][1])
                    if hash(canonical(after)) == wanted
                )
            )
        return tuple(way)

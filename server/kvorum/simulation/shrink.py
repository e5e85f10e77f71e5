"""Makes a failing plan small: fewer faults, and shorter ones, that still break the same thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Shrinker(Generic[T]):
    """Tries smaller plans until none fails any more, or the tries are used up.

    `fails` runs a plan and tells whether it still breaks what was broken at first. `simpler` gives
    weaker forms of one fault, the weakest first.
    """

    def __init__(
        self,
        fails: Callable[[Sequence[T]], bool],
        *,
        simpler: Callable[[T], Iterable[T]] | None = None,
        tries_max: int = 200,
    ) -> None:
        self.tries = 0
        self._fails = fails
        self._simpler = simpler
        self._tries_max = tries_max

    def shrink(self, plan: Sequence[T]) -> list[T]:
        """Return a smaller plan that fails, or `plan` itself where there is none."""
        smallest = self._drop(list(plan))
        return self._weaken(smallest)

    def _try(self, plan: Sequence[T]) -> bool:
        if self.tries >= self._tries_max:
            return False
        self.tries += 1
        return self._fails(plan)

    def _drop(self, plan: list[T]) -> list[T]:
        """Leave out ever smaller pieces of the plan."""
        size = len(plan)
        while size > 0 and plan:
            start = 0
            while start < len(plan):
                rest = plan[:start] + plan[start + size :]
                if self._try(rest):
                    plan = rest
                else:
                    start += size
            size = min(size // 2, len(plan))
        return plan

    def _weaken(self, plan: list[T]) -> list[T]:
        """Put weaker forms in place of single faults, again and again."""
        index = 0
        while index < len(plan):
            for weaker in () if self._simpler is None else self._simpler(plan[index]):
                changed = [*plan[:index], weaker, *plan[index + 1 :]]
                if weaker != plan[index] and self._try(changed):
                    plan = changed
                    break
            else:
                index += 1
        return plan

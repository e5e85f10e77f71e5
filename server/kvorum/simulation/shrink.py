"""The shrinking of a failing plan: fewer and shorter faults that still break the same property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Shrinker(Generic[T]):
    """A search for smaller failing plans, until none fails or the tries are used up.

    `fails` runs a plan and returns whether it breaks the same property as the first plan. `simpler`
    returns weaker forms of one fault, the weakest first.
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
        """Return a smaller plan that fails, else `plan` itself."""
        smallest = self._drop(list(plan))
        return self._weaken(smallest)

    def _try(self, plan: Sequence[T]) -> bool:
        if self.tries >= self._tries_max:
            return False
        self.tries += 1
        return self._fails(plan)

    def _drop(self, plan: list[T]) -> list[T]:
        """Remove ever smaller pieces of the plan."""
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
        """Replace single faults by weaker forms, as long as the plan fails."""
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

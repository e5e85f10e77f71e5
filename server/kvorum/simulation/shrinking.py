"""The shrinking of a failing plan to fewer and shorter faults that break the same property."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from kvorum.simulation.faults import Fault
from kvorum.simulation.run import SeedResult, run_seed
from kvorum.simulation.world import World

T = TypeVar("T")
_SHRINK_TRIES_MAX = 150
_DURATION_MS_MIN = 10


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
        return self._weaken(self._drop(list(plan)))

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


def shrink_seed(result: SeedResult) -> SeedResult:
    """Return the run of a smaller plan that breaks the same property, with its trace."""
    run = partial(run_seed, result.seed, kind=result.kind, duration_ms=result.duration_ms)
    whole = World(result.seed, kind=result.kind, duration_ms=result.duration_ms).plan

    def fails(plan: Sequence[Fault]) -> bool:
        return run(plan=tuple(plan)).broken == result.broken

    # A fault that had not begun at the failure has no part in it.
    earlier = [fault for fault in whole if fault.at_ms <= result.failed_at_ms]
    smaller = tuple(Shrinker(fails, simpler=_shorter, tries_max=_SHRINK_TRIES_MAX).shrink(earlier))
    return run(plan=smaller, is_traced=True)


def _shorter(fault: Fault) -> Iterator[Fault]:
    """Yield the fault with shorter durations, the shortest first."""
    for duration_ms in (_DURATION_MS_MIN, fault.duration_ms // 4, fault.duration_ms // 2):
        if _DURATION_MS_MIN <= duration_ms < fault.duration_ms:
            yield replace(fault, duration_ms=duration_ms)

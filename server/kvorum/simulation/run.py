"""The run of one seed and its result, and the shrinking of a failing seed's plan.

A smaller plan has fewer and shorter faults that still break the same property.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Generic, TypeVar

from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.world import DURATION_MS, World

T = TypeVar("T")
_SHRINK_TRIES_MAX = 150
_DURATION_MS_MIN = 10
_NOTHING_BROKEN = "defect"
"""The `broken` of a run that ended in an error other than a broken property."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """One run: its trace's hash, its faults, its checks, and the property that broke, if any.

    Only `cpu_seconds` differs between two runs of a seed.
    """

    seed: int
    duration_ms: int
    digest: str
    options: str
    faults: Mapping[FaultKind, int]
    """The number of times that each kind of fault struck."""
    checks: Mapping[str, int]
    """The number of times that each property was checked, by its number."""
    target_voters: Mapping[str, int]
    """The counts of target voters that were stated, replaced, reached and so on."""
    acknowledged_writes: int
    events: int
    cpu_seconds: float
    broken: str | None = None
    """The number of the property that broke."""
    failure: str | None = None
    failed_at_ms: float = 0.0
    trace: tuple[str, ...] = ()
    plan: tuple[str, ...] = field(default=())
    """The planned faults, as text."""

    @property
    def rerun(self) -> str:
        """The command line that repeats the run."""
        seconds = self.duration_ms // 1000
        return f"kvorum simulate --only quorum --seed {self.seed} --duration {seconds}"


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


def run_seed(
    seed: int,
    *,
    duration_ms: int = DURATION_MS,
    plan: tuple[Fault, ...] | None = None,
    is_traced: bool = False,
) -> SeedResult:
    """Run one world and return its result; `plan` replaces the drawn faults."""
    began = process_time()
    world = World(seed, duration_ms=duration_ms, plan=plan, is_trace_kept=is_traced)
    broken: str | None = None
    failure: str | None = None
    try:
        world.run()
    except PropertyViolatedError as error:
        broken, failure = error.broken.id, str(error)
    except Exception as error:  # noqa: BLE001 - every end of a seed is reported with its number
        broken, failure = _NOTHING_BROKEN, f"{type(error).__name__}: {error}"
    if failure is not None:
        world.around.trace.say(failure)
    return SeedResult(
        seed=seed,
        duration_ms=duration_ms,
        digest=world.around.trace.digest,
        options=world.around.options.describe(),
        faults=dict(world.around.faults),
        checks=dict(world.around.properties.checks.counts),
        target_voters=dict(world.around.properties.reassignments.counts),
        acknowledged_writes=world.around.properties.ledger.acknowledged_count,
        events=world.around.trace.said_count,
        cpu_seconds=process_time() - began,
        broken=broken,
        failure=failure,
        failed_at_ms=world.around.now_ms,
        trace=tuple(world.around.trace.lines),
        plan=tuple(fault.describe() for fault in world.plan),
    )


def shrink_seed(result: SeedResult) -> SeedResult:
    """Return the run of a smaller plan that breaks the same property, with its trace."""
    seed, duration_ms = result.seed, result.duration_ms
    whole = World(seed, duration_ms=duration_ms).plan

    def fails(plan: Sequence[Fault]) -> bool:
        return run_seed(seed, duration_ms=duration_ms, plan=tuple(plan)).broken == result.broken

    # A fault that had not begun at the failure has no part in it.
    earlier = [fault for fault in whole if fault.at_ms <= result.failed_at_ms]
    smaller = tuple(Shrinker(fails, simpler=_shorter, tries_max=_SHRINK_TRIES_MAX).shrink(earlier))
    return run_seed(seed, duration_ms=duration_ms, plan=smaller, is_traced=True)


def _shorter(fault: Fault) -> Iterator[Fault]:
    """Yield the fault with shorter durations, the shortest first."""
    for duration_ms in (_DURATION_MS_MIN, fault.duration_ms // 4, fault.duration_ms // 2):
        if _DURATION_MS_MIN <= duration_ms < fault.duration_ms:
            yield replace(fault, duration_ms=duration_ms)

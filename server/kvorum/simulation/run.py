"""The run of one seed, and the shrinking of a failing seed's plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import process_time

from kvorum.simulation.faults import Fault
from kvorum.simulation.properties.checks import PropertyViolatedError
from kvorum.simulation.result import SeedResult
from kvorum.simulation.shrink import Shrinker
from kvorum.simulation.world import DURATION_MS, World

_SHRINK_TRIES_MAX = 150
_DURATION_MS_MIN = 10
_NOTHING_BROKEN = "defect"
"""The `broken` of a run that ended in an error other than a broken property."""


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
        world.trace.say(failure)
    return SeedResult(
        seed=seed,
        duration_ms=duration_ms,
        digest=world.trace.digest,
        options=world.options.describe(),
        faults=dict(world.fired),
        checks=dict(world.properties.checks.counts),
        target_voters=dict(world.properties.reassignments.counts),
        acknowledged_writes=world.properties.ledger.acknowledged_count,
        events=world.trace.said_count,
        cpu_seconds=process_time() - began,
        broken=broken,
        failure=failure,
        failed_at_ms=world.now_ms,
        trace=tuple(world.trace.lines),
        plan=tuple(fault.describe() for fault in world.plan),
    )


def shrink_seed(result: SeedResult) -> SeedResult:
    """Return the run of a smaller plan that breaks the same property, with its trace."""
    seed, duration_ms = result.seed, result.duration_ms
    whole = World(seed, duration_ms=duration_ms).plan

    def fails(plan: Sequence[Fault]) -> bool:
        again = run_seed(seed, duration_ms=duration_ms, plan=tuple(plan))
        return again.broken == result.broken

    # A fault that had not begun at the failure has no part in it.
    earlier = [fault for fault in whole if fault.at_ms <= result.failed_at_ms]
    shrinker = Shrinker(fails, simpler=_shorter, tries_max=_SHRINK_TRIES_MAX)
    smaller = tuple(shrinker.shrink(earlier))
    return run_seed(seed, duration_ms=duration_ms, plan=smaller, is_traced=True)


def _shorter(fault: Fault) -> Iterator[Fault]:
    """Yield the fault with shorter durations, the shortest first."""
    for duration_ms in (_DURATION_MS_MIN, fault.duration_ms // 4, fault.duration_ms // 2):
        if _DURATION_MS_MIN <= duration_ms < fault.duration_ms:
            yield replace(fault, duration_ms=duration_ms)

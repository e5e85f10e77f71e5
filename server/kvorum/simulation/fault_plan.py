"""The plan of a run's faults, drawn before the run begins; any fault of it can be left out."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Final

from kvorum.simulation.fault_ratios import RATIOS
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.options import Options, QuorumKind

_HIDDEN_VOTERS_OF_A_RUN = (1, 2, 3)
"""The numbers of times that a voter is hidden in a run; each run draws one of these."""
_FIRST_AT_MS = 3_000
"""The earliest time of a fault: before it a quorum starts undisturbed."""
_STRIKES_OF_A_KIND = (1, 1, 2, 3, 5)
"""The rates at which kinds of faults strike in a run; each kind draws one of these."""
_LATE_TARGETS_MS = 3_000
"""The time before the end of the faults at which late target voters are stated."""
_USUAL_DURATION_MS: Final[Mapping[FaultKind, int]] = MappingProxyType(
    {
        FaultKind.LOST_MESSAGES: 8_000,
        FaultKind.DOUBLED_MESSAGES: 8_000,
        FaultKind.LATE_MESSAGES: 6_000,
        FaultKind.CLOGGED_PATH: 2_000,
        FaultKind.PARTITION: 6_000,
        FaultKind.CUT_PATHS: 6_000,
        FaultKind.BROKEN_CONNECTION: 2_000,
        FaultKind.CRASH_POINT: 3_000,
        FaultKind.RESTART: 5_000,
        FaultKind.PAUSE: 2_000,
        FaultKind.CHANGED_CLOCK: 1,
        FaultKind.LOST_TAIL: 3_000,
        FaultKind.FAILED_SYNC: 3_000,
        FaultKind.REFUSED_WRITE: 6_000,
        FaultKind.BIT_FLIP: 1,
        FaultKind.WIPE: 3_000,
        FaultKind.WIPE_AFTER_UPGRADE: 3_000,
        FaultKind.UPGRADE: 1,
        FaultKind.CHANGED_VOTERS: 1,
        FaultKind.CHANGED_TARGET_VOTERS: 1,
        FaultKind.CRASH_AT_STEP: 3_000,
        FaultKind.HIDDEN_VOTER: 10_000,
    }
)
_USUAL_DURATION_MS_MAX = 20_000
"""The longest duration of a fault, unless its kind has one of its own."""
_WITH_UPGRADE: Final = frozenset({FaultKind.WIPE_AFTER_UPGRADE})
"""Kinds that are not drawn: a run with an upgraded quorum has each once, with the upgrade."""
_DRAWN_APART: Final = frozenset({FaultKind.HIDDEN_VOTER})
"""Kinds that came later, and have generators of their own: a seed keeps its other faults."""
_WITH_VOTERS_IN_LOG: Final = frozenset(
    {
        FaultKind.WIPE,
        FaultKind.CHANGED_VOTERS,
        FaultKind.CHANGED_TARGET_VOTERS,
        FaultKind.CRASH_AT_STEP,
    }
)
"""Kinds that need voters with known directories, or voters that may change."""
_DURATION_MS_MAX: Final[Mapping[FaultKind, int]] = MappingProxyType(
    {FaultKind.RESTART: 60_000, FaultKind.PAUSE: 10_000}
)


def draw_plan(random: Random, options: Options) -> tuple[Fault, ...]:
    """Draw the faults of a run, of some kinds only, in order of their times."""
    share = random.choice(RATIOS.kinds_of_a_run)
    drawable = [kind for kind in _USUAL_DURATION_MS if kind not in _WITH_UPGRADE | _DRAWN_APART]
    kinds = [kind for kind in drawable if random.random() < share]
    plan: list[Fault] = []
    for kind in kinds:
        if kind in _WITH_VOTERS_IN_LOG and options.kind is QuorumKind.STATIC:
            continue
        count = random.choice(_STRIKES_OF_A_KIND)
        plan += [_draw(random, kind, until_ms=options.safety_ms) for _ in range(count)]
    if options.kind is not QuorumKind.STATIC and random.random() < RATIOS.late_targets:
        late = _draw(random, FaultKind.CHANGED_TARGET_VOTERS, until_ms=options.safety_ms)
        plan.append(replace(late, at_ms=options.safety_ms - 1 - random.randrange(_LATE_TARGETS_MS)))
    if options.kind is QuorumKind.UPGRADED:
        upgrade = _draw(random, FaultKind.UPGRADE, until_ms=options.safety_ms // 2)
        lost_disk = _draw(random, FaultKind.WIPE_AFTER_UPGRADE, until_ms=options.safety_ms)
        plan += [upgrade, replace(lost_disk, at_ms=upgrade.at_ms)]
    return in_order(plan)


def draw_hidden_voters(random: Random, options: Options) -> tuple[Fault, ...]:
    """Draw the times at which voters are hidden in a run."""
    if options.kind is QuorumKind.STATIC or random.random() >= RATIOS.voter_is_hidden:
        return ()
    count = random.choice(_HIDDEN_VOTERS_OF_A_RUN)
    return tuple(
        _draw(random, FaultKind.HIDDEN_VOTER, until_ms=options.safety_ms) for _ in range(count)
    )


def in_order(plan: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults of a plan in order of their times."""
    return tuple(sorted(plan, key=lambda fault: (fault.at_ms, fault.kind.value, fault.seed)))


def _draw(random: Random, kind: FaultKind, *, until_ms: int) -> Fault:
    duration_ms = int(random.expovariate(1.0) * _USUAL_DURATION_MS[kind]) + 1
    return Fault(
        kind=kind,
        at_ms=random.randrange(_FIRST_AT_MS, until_ms),
        duration_ms=min(duration_ms, _DURATION_MS_MAX.get(kind, _USUAL_DURATION_MS_MAX)),
        first=random.randrange(1_000_000),
        second=random.randrange(1_000_000),
        amount=random.random(),
        seed=random.randrange(2**32),
    )

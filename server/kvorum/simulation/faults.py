"""The faults of a run as plain data, drawn before it begins, so that any can be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Final

from kvorum.simulation.fault_kinds import FaultKind
from kvorum.simulation.fault_ratios import USUAL_RATIOS, FaultRatios
from kvorum.simulation.options import Options, QuorumKind

_FIRST_AT_MS = 3_000
_STRIKES_OF_A_KIND = (1, 1, 2, 3, 5)
"""The rates at which kinds of faults strike in a run; each kind draws one of these."""
_LEADER_STEPS = 5
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
    }
)
_USUAL_DURATION_MS_MAX = 20_000
_WITH_UPGRADE: Final = frozenset({FaultKind.WIPE_AFTER_UPGRADE})
"""Kinds that are not drawn: a run with an upgraded quorum has each once, with the upgrade."""
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


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its kind, time, duration, targets and amount.

    The targets are numbers, taken modulo the number of candidates when the fault strikes; `amount`
    is between 0 and 1. All further random choices of the fault come from `seed`.
    """

    kind: FaultKind
    at_ms: int
    duration_ms: int
    first: int
    second: int
    amount: float
    seed: int

    def describe(self) -> str:
        """Return the fault as one line of text."""
        return f"{self.kind.value} at {self.at_ms / 1000:.3f} s"


def draw_plan(
    random: Random, options: Options, *, ratios: FaultRatios = USUAL_RATIOS
) -> tuple[Fault, ...]:
    """Draw the faults of a run, of some kinds only, in order of their times."""
    share = random.choice(ratios.kinds_of_a_run)
    drawable = [kind for kind in _USUAL_DURATION_MS if kind not in _WITH_UPGRADE]
    kinds = [kind for kind in drawable if random.random() < share]
    plan: list[Fault] = []
    for kind in kinds:
        if kind in _WITH_VOTERS_IN_LOG and options.kind is QuorumKind.STATIC:
            continue
        count = random.choice(_STRIKES_OF_A_KIND)
        plan += [_draw(random, kind, until_ms=options.safety_ms) for _ in range(count)]
    if options.kind is not QuorumKind.STATIC and random.random() < ratios.late_targets:
        late = _draw(random, FaultKind.CHANGED_TARGET_VOTERS, until_ms=options.safety_ms)
        late_ms = random.randrange(_LATE_TARGETS_MS)
        plan.append(replace(late, at_ms=options.safety_ms - 1 - late_ms))
    if options.kind is QuorumKind.UPGRADED:
        upgrade = _draw(random, FaultKind.UPGRADE, until_ms=options.safety_ms // 2)
        lost_disk = _draw(random, FaultKind.WIPE_AFTER_UPGRADE, until_ms=options.safety_ms)
        plan += [upgrade, replace(lost_disk, at_ms=upgrade.at_ms)]
    return tuple(sorted(plan, key=lambda fault: (fault.at_ms, fault.kind.value, fault.seed)))


def strikes_leader(fault: Fault, ratios: FaultRatios) -> bool:
    """Return whether a fault strikes the leader."""
    return fault.second % _LEADER_STEPS < ratios.strikes_leader * _LEADER_STEPS


def _draw(random: Random, kind: FaultKind, *, until_ms: int) -> Fault:
    usual_ms = _USUAL_DURATION_MS[kind]
    duration_ms = int(random.expovariate(1.0) * usual_ms) + 1
    return Fault(
        kind=kind,
        at_ms=random.randrange(_FIRST_AT_MS, until_ms),
        duration_ms=min(duration_ms, _DURATION_MS_MAX.get(kind, _USUAL_DURATION_MS_MAX)),
        first=random.randrange(1_000_000),
        second=random.randrange(1_000_000),
        amount=random.random(),
        seed=random.randrange(2**32),
    )

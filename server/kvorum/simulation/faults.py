"""The faults of a run as plain data, drawn before it begins: any of them can be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Final

from kvorum.simulation.options import Options, QuorumKind

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "F1": "messages are lost",
        "F2": "messages are doubled",
        "F3": "messages are late and overtake each other",
        "F4": "a path is clogged, then everything arrives at once",
        "F5": "the network is cut in two",
        "F6": "one direction is cut, one node is cut off, or one after the other is",
        "F7": "a connection is reset, or half open",
        "F8": "a process ends between two steps of what it does",
        "F9": "a process is killed or stopped, and started again",
        "F10": "a process is paused",
        "F11": "a clock drifts, or is set",
        "F12": "what was not synced is lost with the power",
        "F13": "a write is torn",
        "F14": "a new name is lost with the power",
        "F15": "a sync fails",
        "F16": "a disk is full, or refuses writes",
        "F17": "a bit flips",
        "F18": "a disk is replaced",
        "F19": "nodes of several releases, kraft.version is upgraded",
        "F20": "voters come and go",
    }
)
"""The kinds by number; F12 to F14 come of power cuts, F19 mostly of the options."""

_FIRST_AT_MS = 3_000
_USUAL_DURATION_MS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "F1": 8_000,
        "F2": 8_000,
        "F3": 6_000,
        "F4": 2_000,
        "F5": 6_000,
        "F6": 6_000,
        "F7": 2_000,
        "F8": 3_000,
        "F9": 5_000,
        "F10": 2_000,
        "F11": 1,
        "F12": 3_000,
        "F15": 3_000,
        "F16": 6_000,
        "F17": 1,
        "F18": 3_000,
        "F19": 1,
        "F20": 1,
    }
)
_DURATION_MS_MAX: Final[Mapping[str, int]] = MappingProxyType({"F9": 60_000, "F10": 10_000})


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what, when, for how long, to whom, and how bad.

    Who is meant is said by numbers that are taken modulo those there are when it strikes; `amount`
    is between 0 and 1. Whatever else is drawn comes from `seed`.
    """

    kind: str
    at_ms: int
    duration_ms: int
    first: int
    second: int
    amount: float
    seed: int

    def told(self) -> str:
        """Return the fault in a line."""
        return f"{self.kind} at {self.at_ms / 1000:.3f} s: {KINDS[self.kind]}"


def draw_plan(random: Random, options: Options) -> tuple[Fault, ...]:
    """Draw the faults of a run, some kinds of them, in order of their times."""
    share = random.choice((0.3, 0.6, 0.9))
    kinds = [kind for kind in _USUAL_DURATION_MS if random.random() < share]
    plan: list[Fault] = []
    for kind in kinds:
        if kind in {"F18", "F20"} and options.kind is QuorumKind.STATIC:
            continue
        count = random.choice((1, 1, 2, 3, 5))
        plan += [_draw(random, kind, until_ms=options.safety_ms) for _ in range(count)]
    if options.kind is QuorumKind.UPGRADED:
        upgrade = _draw(random, "F19", until_ms=options.safety_ms // 2)
        plan.append(upgrade)
    return tuple(sorted(plan, key=lambda fault: (fault.at_ms, fault.kind, fault.seed)))


def _draw(random: Random, kind: str, *, until_ms: int) -> Fault:
    usual_ms = _USUAL_DURATION_MS[kind]
    duration_ms = int(random.expovariate(1.0) * usual_ms) + 1
    return Fault(
        kind=kind,
        at_ms=random.randrange(_FIRST_AT_MS, until_ms),
        duration_ms=min(duration_ms, _DURATION_MS_MAX.get(kind, 20_000)),
        first=random.randrange(1_000_000),
        second=random.randrange(1_000_000),
        amount=random.random(),
        seed=random.randrange(2**32),
    )

"""Worlds with target voters: replaced, cancelled, reached, under leaders that crash.

They are shorter than usual, and were chosen for what happens in them, of which the last test makes
sure.
"""

from collections import Counter
from functools import cache

import pytest

from kvorum.simulation.faults import FaultKind
from kvorum.simulation.run import SeedResult, run_seed
from kvorum.simulation.surroundings import StepMoment

SEEDS = (101, 110, 133, 143, 157)
DURATION_MS = 60_000


@cache
def _run(seed: int) -> SeedResult:
    return run_seed(seed, duration_ms=DURATION_MS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_world_with_target_voters_keeps_its_properties(seed: int) -> None:
    result = _run(seed)
    assert result.failure is None, f"{result.failure}; again: {result.rerun}"


@pytest.mark.slow
def test_every_kind_of_step_is_in_these_worlds() -> None:
    happened: Counter[str] = Counter()
    checks: Counter[str] = Counter()
    for seed in SEEDS:
        result = _run(seed)
        happened.update(result.target_voters)
        checks.update(result.checks)
    wanted = {
        "target voters stated",
        "target voters replaced",
        "target voters reached",
        "target voters cancelled",
    }
    wanted |= {moment.value for moment in StepMoment}
    assert wanted - set(happened) == set()
    assert all(checks[name] for name in ("P30", "P31", "P32", "P33", "L9"))
    assert any(FaultKind.CRASH_AT_STEP in _run(seed).faults for seed in SEEDS)

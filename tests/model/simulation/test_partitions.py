"""Brokers with the real replicas and their controller, in worlds drawn from a number each.

A few worlds run every time, some of which nobody has seen; ``KVORUM_PARTITION_SEEDS=1000`` runs
that many more, from ``KVORUM_PARTITION_FIRST_SEED`` on. The mistakes in `partition_mistakes.py`
are made one by one to see that the worlds find them.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections import Counter

import pytest
from tests.model.simulation.partition_mistakes import MISTAKES, Mistake

from kvorum.simulation.partitions.world import run_partitions_seed

FIXED_SEEDS = (*range(1, 16), 747587747211, 1099047201770, 969694340070)
FRESH_SEEDS = 8
MORE_SEEDS = int(os.environ.get("KVORUM_PARTITION_SEEDS", "0"))
FIRST_OF_MORE = int(os.environ.get("KVORUM_PARTITION_FIRST_SEED", "1000"))
COUNTS_TOLD = ("committed records", "leaders", "ISR changes", "truncations", "kill", "power", "cut")


@pytest.mark.parametrize("seed", FIXED_SEEDS)
def test_a_world_known_for_long_loses_nothing(seed: int) -> None:
    result = run_partitions_seed(seed)
    assert result.broken is None, f"seed {seed}: {result.told}"
    assert result.counts["committed records"] > 100


@pytest.mark.parametrize("number", range(FRESH_SEEDS))
def test_a_world_that_nobody_has_seen_loses_nothing(number: int) -> None:
    seed = secrets.randbelow(2**40)
    result = run_partitions_seed(seed)
    assert result.broken is None, f"seed {seed}: {result.told}"


@pytest.mark.timeout(60 + 5 * MORE_SEEDS)
@pytest.mark.skipif(not MORE_SEEDS, reason="KVORUM_PARTITION_SEEDS names no number of worlds")
def test_many_worlds_lose_nothing() -> None:
    counts: Counter[str] = Counter()
    for seed in range(FIRST_OF_MORE, FIRST_OF_MORE + MORE_SEEDS):
        result = run_partitions_seed(seed)
        assert result.broken is None, f"seed {seed}: {result.told}"
        counts.update(result.counts)
    told = ", ".join(f"{what} {counts[what]:,}" for what in COUNTS_TOLD)
    sys.stdout.write(f"\n{MORE_SEEDS} worlds, none broken; {told}\n")


def test_a_world_repeats_itself() -> None:
    assert run_partitions_seed(5) == run_partitions_seed(5)


def test_a_few_worlds_have_every_fault() -> None:
    counts: Counter[str] = Counter()
    for seed in range(30, 36):
        counts.update(run_partitions_seed(seed).counts)
    faults = ("kill", "power", "stop", "cut", "controller", "struck while joining")
    assert [fault for fault in faults if counts[fault] < 3] == []
    assert counts["leaders"] > 20
    assert counts["ISR changes"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_found(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The world known for it comes first; if the worlds have changed, another one shows it."""
    mistake.make(monkeypatch)
    broken: str | None = None
    for seed in (mistake.seed, *range(1, 150)):
        broken = run_partitions_seed(seed).broken
        if broken is not None:
            break
    assert broken in mistake.claims

"""A few worlds on every test run: some that are always the same, and some that never were."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest

from kvorum.simulation.run import run_seed

FIXED_SEEDS = range(1, 16)
FRESH_SEEDS = 15
DURATION_MS = 120_000


@pytest.mark.parametrize("seed", FIXED_SEEDS)
def test_a_world_known_for_long_keeps_its_properties(seed: int) -> None:
    result = run_seed(seed, duration_ms=DURATION_MS)
    assert result.failure is None, f"{result.failure}; again: {result.rerun}"


@pytest.mark.parametrize("number", range(FRESH_SEEDS))
def test_a_world_that_nobody_has_seen_keeps_its_properties(number: int) -> None:
    seed = secrets.randbelow(2**40)
    result = run_seed(seed, duration_ms=DURATION_MS)
    assert result.failure is None, f"{result.failure}; again: {result.rerun}"


@pytest.mark.parametrize("seed", [3, 4])
def test_a_world_repeats_itself_in_another_process(seed: int) -> None:
    """Strings hash differently there, so an order that hangs on a set would show."""
    here = run_seed(seed, duration_ms=60_000)
    command = [sys.executable, "-m", "kvorum.cli", "simulate", "--digest", "--duration", "60"]
    done = subprocess.run(
        [*command, "--seed", str(seed)],
        env={**os.environ, "PYTHONHASHSEED": "42"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == here.digest

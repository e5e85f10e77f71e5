"""A few worlds on every test run: some that are always the same, and some that never were."""

import os
import secrets
from collections import Counter

import pytest
from tests.support.node_process import run_python

from kvorum.raft.messages import Error
from kvorum.raft.replica import Replica
from kvorum.raft.voter_changes import additions
from kvorum.raft.voter_changes.steps import Refusal, refuse_unless_settled
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.properties.catalogue import ALL
from kvorum.simulation.run import run_seed

FIXED_SEEDS = range(1, 16)
FRESH_SEEDS = 15
DURATION_MS = 120_000
WITH_TARGET_VOTERS = 101
"""A world in which voters are removed because of target voters: P32 is about such removals."""
OUT_OF_TIME = {31: "P5", 9: "P33", 70: "P11"}
"""Worlds in which a leader is asked for another change right after one has run out of time, and
what breaks where it does not refuse that one; docs/verification.md names them."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", FIXED_SEEDS)
def test_a_world_known_for_long_keeps_its_properties(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(FRESH_SEEDS))
def test_a_fresh_world_keeps_its_properties(number: int) -> None:
    check(secrets.randbelow(2**40))


def check(seed: int) -> None:
    result = run_seed(seed, duration_ms=DURATION_MS)
    assert result.failure is None, f"{result.failure}; again: {result.rerun}"


@pytest.mark.process
@pytest.mark.parametrize("seed", [3, 4])
def test_a_world_repeats_itself_in_another_process(seed: int) -> None:
    """Strings hash differently there, so an order that hangs on a set would show."""
    here = run_seed(seed, duration_ms=60_000)
    command = ("-m", "kvorum.cli", "simulate", "--only", "quorum", "--digest", "--duration", "60")
    environment = os.environ | {"PYTHONHASHSEED": "42"}
    done = run_python(*command, "--seed", str(seed), environment=environment)
    assert (done.returncode, done.stdout.strip()) == (0, here.digest)


@pytest.mark.slow
def test_a_few_worlds_are_enough_to_look_at_every_property() -> None:
    """A property that nothing exercises would hold whatever happens."""
    checks: Counter[str] = Counter()
    faults: Counter[FaultKind] = Counter()
    for seed in (*range(20, 28), WITH_TARGET_VOTERS):
        result = run_seed(seed, duration_ms=60_000)
        checks.update(result.checks)
        faults.update(kind for kind, count in result.faults.items() if count)
    assert [one.id for one in ALL if not checks[one.id]] == []
    assert len(faults) >= 16


@pytest.mark.parametrize(
    "seed", [31, pytest.param(9, marks=pytest.mark.slow), pytest.param(70, marks=pytest.mark.slow)]
)
def test_worlds_show_a_leader_that_forgets_a_change_out_of_time(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(replica: Replica, what: str) -> Refusal | None:
        refusal = refuse_unless_settled(replica, what)
        return None if refusal is not None and refusal.error is Error.REQUEST_TIMED_OUT else refusal

    monkeypatch.setattr(additions, "refuse_unless_settled", forget)
    assert run_seed(seed, duration_ms=DURATION_MS).broken == OUT_OF_TIME[seed]

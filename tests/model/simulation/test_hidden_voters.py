"""Worlds with a voter that cannot be reached where it says, and an operator's changes meanwhile."""

from dataclasses import replace

import pytest
from tests.model.mutation.catalog import MUTANTS
from tests.model.mutation.in_process import put_in

from kvorum.simulation import hidden_voters
from kvorum.simulation.fault_ratios import RATIOS
from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.node import PORT, Part, SimulatedNode
from kvorum.simulation.run import run_seed
from kvorum.simulation.world import World

DURATION_MS = 60_000
DYNAMIC_SEED = 28
"""Three voters and a controller that is not a voter."""
HIDDEN_AT_MS = 5_000
HIDDEN_FOR_MS = 10_000
SHOWN_AT_MS = HIDDEN_AT_MS + HIDDEN_FOR_MS
BUG = "a probe of an update before an operator's change"
SHOWN_BY_SEEDS = (14, 36, 46)
"""Some of the worlds that show the bug."""


def _world(monkeypatch: pytest.MonkeyPatch, *, is_changed: bool) -> tuple[World, SimulatedNode]:
    """Return a world in which a voter is hidden, and this voter, while it is hidden.

    The operator removes it while the leader asks it for its versions, or changes nothing.
    """
    share = float(is_changed)
    ratios = replace(RATIOS, change_during_probe=share, hidden_voter_is_removed=share)
    monkeypatch.setattr(hidden_voters, "RATIOS", ratios)
    fault = Fault(FaultKind.HIDDEN_VOTER, HIDDEN_AT_MS, HIDDEN_FOR_MS, 0, 0, 0.0, 1)
    world = World(DYNAMIC_SEED, duration_ms=DURATION_MS, plan=(fault,), is_trace_kept=True)
    world.run()
    (hidden,) = [node for node in world.quorum.nodes.values() if node.port != PORT]
    assert hidden.part is Part.VOTER
    return world, hidden


def test_the_port_of_a_hidden_voter_is_recorded_once_requests_arrive_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, hidden = _world(monkeypatch, is_changed=False)
    leader = world.quorum.leader()
    assert leader is not None
    text = world.around.trace.text()
    assert text.count(f"{hidden.node_id} hears from {leader.node_id}: REQUEST_TIMED_OUT") > 1
    assert leader.voters.voter_for(hidden.key) == hidden.as_voter()


def test_a_hidden_voter_is_removed_at_the_first_try(monkeypatch: pytest.MonkeyPatch) -> None:
    world, hidden = _world(monkeypatch, is_changed=True)
    leader = world.quorum.leader()
    assert leader is not None
    assert leader.voters.by_id(hidden.node_id) is None
    answers = [line for line in world.around.trace.lines if "operator hears" in line]
    assert len(answers) == 1
    assert answers[0].endswith("error 0")
    assert float(answers[0].split()[0]) * 1_000 < SHOWN_AT_MS


@pytest.mark.parametrize("seed", SHOWN_BY_SEEDS)
def test_worlds_show_a_probe_that_holds_up_an_operators_change(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bug,) = [mutant for mutant in MUTANTS if mutant.id == BUG]
    put_in(monkeypatch, bug.edits)
    assert run_seed(seed).broken == "L7"

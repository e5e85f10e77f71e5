"""Whole worlds of a quorum: they repeat themselves, and no fault takes a majority's data."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kvorum.cli import main
from kvorum.metadata.voters import parse_target_voters
from kvorum.simulation.budget import may_become, may_damage, may_reach
from kvorum.simulation.fault_plan import draw_plan
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.node import Part, SimulatedNode
from kvorum.simulation.options import draw_options
from kvorum.simulation.run import run_seed
from kvorum.simulation.world import World

DURATION_MS = 20_000
DYNAMIC_SEED = 28
UPGRADED_SEED = 17
"""Three voters and a controller that is not a voter."""
SIMULATE = ("simulate", "--only", "quorum", "--seed", "7", "--duration", "60")
SHORT_MS = 60_000


def _dynamic_world() -> tuple[World, list[SimulatedNode], SimulatedNode]:
    """Run a world without faults; return it, its voters, and the controller that is not a voter."""
    world = World(DYNAMIC_SEED, duration_ms=DURATION_MS, plan=())
    world.run()
    voters = [node for node in world.quorum.nodes.values() if node.part is Part.VOTER]
    spare = next(node for node in world.quorum.nodes.values() if node.part is Part.SPARE)
    return world, voters, spare


def test_nothing_strikes_a_node_once_all_faults_have_stopped() -> None:
    """A disk is replaced so late that its node's second restart falls into the calm."""
    options = draw_options(Random(f"{UPGRADED_SEED}/options"), duration_ms=DURATION_MS)
    drawn = draw_plan(Random(f"{UPGRADED_SEED}/plan"), options)
    upgrade = next(fault for fault in drawn if fault.kind is FaultKind.UPGRADE)
    lost_disk = next(fault for fault in drawn if fault.kind is FaultKind.WIPE_AFTER_UPGRADE)
    plan = (
        replace(upgrade, at_ms=1_000),
        replace(lost_disk, at_ms=1_000, duration_ms=DURATION_MS * 3 // 8),
    )
    world = World(UPGRADED_SEED, duration_ms=DURATION_MS, plan=plan, is_trace_kept=True)
    world.run()
    text = world.around.trace.text()
    assert "has another disk" in text
    assert "is killed" not in text.partition("all faults stop")[2]


def test_a_world_without_faults_is_calm_and_repeats_itself() -> None:
    digests = set[str]()
    for _ in range(2):
        world = World(7, duration_ms=DURATION_MS, plan=())
        world.run()
        assert world.around.properties.elections.latest_epoch == 1
        assert world.around.properties.ledger.acknowledged_count > 0
        digests.add(world.around.trace.digest)
    assert len(digests) == 1


def test_damaged_controllers_count_as_voters_they_may_become() -> None:
    """Else one that joins with its damage would leave a majority without what it stored."""
    world, voters, spare = _dynamic_world()
    assert len(voters) == 3
    assert may_damage(world.quorum, voters[0])
    spare.is_damaged = True
    assert not may_damage(world.quorum, voters[0])


def test_a_single_target_voter_is_out_of_reach_while_a_damaged_controller_may_join_it() -> None:
    world, voters, spare = _dynamic_world()
    only = voters[0].voters
    for voter in voters[1:]:
        only = only.without(voter.node_id)
    targets = parse_target_voters(str(voters[0].node_id))
    assert may_reach(world.quorum, targets)
    assert may_become(world.quorum, only)
    spare.is_damaged = True
    assert not may_reach(world.quorum, targets)
    assert not may_become(world.quorum, only)


def test_a_controller_is_not_damaged_that_may_become_a_target_voter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _, spare = _dynamic_world()
    assert may_damage(world.quorum, spare)
    targets = parse_target_voters("1")
    monkeypatch.setattr(
        world.around.properties.reassignments, "possible_targets", lambda: iter([targets])
    )
    assert not may_damage(world.quorum, spare)


def test_target_voters_that_others_may_lead_through_are_judged_with_them() -> None:
    """The other one leads to two voters, one of which is damaged."""
    world, voters, _ = _dynamic_world()
    first, second, third = sorted(node.node_id for node in voters)
    world.quorum.nodes[first].is_damaged = True
    last = parse_target_voters(f"{second},{third}")
    assert may_reach(world.quorum, last)
    world.around.properties.reassignments.asked_for(parse_target_voters(f"{first},{third}"))
    assert not may_reach(world.quorum, last)


def test_a_seed_says_everything_about_its_world() -> None:
    first = run_seed(7, duration_ms=SHORT_MS)
    assert first.failure is None
    assert first.digest == run_seed(7, duration_ms=SHORT_MS, is_traced=True).digest
    assert first.digest != run_seed(8, duration_ms=SHORT_MS).digest
    assert first.counts["acknowledged writes"] > 0


def test_the_plan_can_be_replaced() -> None:
    whole = World(3, duration_ms=60_000).plan
    assert len(whole) > 3
    result = run_seed(3, duration_ms=60_000, plan=whole[:2])
    assert result.plan == tuple(fault.describe() for fault in whole[:2])


@pytest.mark.process
def test_the_command_reports_and_writes_the_trace(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    assert main([*SIMULATE, "--trace", str(trace)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("seed 7\n1 seeds, 0 failed\n")
    assert "1 of the seeds run a second time" in out
    assert trace.read_text("utf-8").splitlines()[-1].endswith("the end")


def test_the_command_prints_the_hash_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SIMULATE, "--digest"]) == 0
    assert capsys.readouterr().out.strip() == run_seed(7, duration_ms=SHORT_MS).digest


@pytest.mark.process
def test_seeds_run_in_several_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SIMULATE, "--seeds", "3", "--jobs", "2"]) == 0
    assert "3 seeds, 0 failed" in capsys.readouterr().out

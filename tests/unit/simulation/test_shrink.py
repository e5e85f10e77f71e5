"""Making failing plans small, adding up results, and the command around it all."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kvorum.cli import main
from kvorum.cli import simulate as command
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.properties.catalogue import ALL
from kvorum.simulation.report import SEEDS_FOR_SHARES, Report, failure_lines
from kvorum.simulation.run import SeedResult, Shrinker, run_seed
from kvorum.simulation.world import World

SIMULATE = ("simulate", "--only", "quorum", "--seed", "7", "--duration", "60")
SHORT_MS = 60_000


def test_only_the_faults_that_matter_are_left() -> None:
    def fails(plan: Sequence[int]) -> bool:
        return {3, 17} <= set(plan)

    shrinker = Shrinker(fails)
    assert shrinker.shrink(range(40)) == [3, 17]
    assert shrinker.tries < 120


def test_a_plan_that_fails_without_any_fault_becomes_empty() -> None:
    def fails(plan: Sequence[int]) -> bool:
        return len(plan) < 100

    assert Shrinker(fails).shrink([1, 2, 3]) == []


def test_faults_are_made_weaker_as_long_as_that_fails() -> None:
    def fails(plan: Sequence[int]) -> bool:
        return sum(plan) >= 20

    def weaker(one: int) -> tuple[int, int]:
        return one // 4, one // 2

    assert Shrinker(fails, simpler=weaker).shrink([100, 3]) == [25]


def test_a_shrinker_gives_up_after_its_tries() -> None:
    plans: list[Sequence[int]] = []

    def fails(plan: Sequence[int]) -> bool:
        plans.append(plan)
        return False

    assert Shrinker(fails, tries_max=7).shrink(list(range(50))) == list(range(50))
    assert len(plans) == 7


def _result(
    seed: int,
    *,
    failure: str | None = None,
    faults: dict[FaultKind, int] | None = None,
    checks: dict[str, int] | None = None,
) -> SeedResult:
    return SeedResult(
        seed=seed,
        duration_ms=120_000,
        digest="d",
        options="options",
        faults=dict.fromkeys(FaultKind, 1) if faults is None else faults,
        checks={one.id: 1 for one in ALL} if checks is None else checks,
        target_voters={},
        acknowledged_writes=10,
        events=100,
        cpu_seconds=0.5,
        broken=None if failure is None else "P1",
        failure=failure,
    )


def test_a_report_adds_up() -> None:
    report = Report()
    report.add(_result(1))
    report.add(_result(2, failure="P1 is broken", faults={FaultKind.LOST_MESSAGES: 5}))
    text = "\n".join(report.lines())
    assert text.startswith("2 seeds, 1 failed\n0.50 s of processor time, 100 events and 10 ack")
    assert "messages lost                              6     100%" in text
    assert "messages doubled                           1      50%" in text
    assert "at most 23 kinds in one seed" in text
    assert "P1   an epoch has at most one leader, ever" in text


def test_rare_faults_and_properties_never_checked_are_missed_over_many_seeds() -> None:
    report = Report()
    checks = {one.id: 1 for one in ALL if one.id != "P14"}
    for seed in range(SEEDS_FOR_SHARES):
        faults = {kind: int(kind is not FaultKind.WIPE or seed < 9) for kind in FaultKind}
        assert report.missing == []
        report.add(_result(seed, faults=faults, checks=checks))
    assert report.missing == [
        "'disk replaced' struck in 9 of 200 seeds",
        "P14 (a removed voter does not come back unless asked for) was never checked",
    ]


def test_a_failure_says_how_to_see_it_again() -> None:
    lines = list(failure_lines(_result(77, failure="P1 is broken: so")))
    assert lines[0].startswith("seed 77 failed at 0.000 ms: P1 is broken: so")
    assert lines[-1] == "  again: kvorum simulate --only quorum --seed 77 --duration 120"


def test_a_seed_says_everything_about_its_world() -> None:
    first = run_seed(7, duration_ms=SHORT_MS)
    assert first.failure is None
    assert first.digest == run_seed(7, duration_ms=SHORT_MS, is_traced=True).digest
    assert first.digest != run_seed(8, duration_ms=SHORT_MS).digest
    assert first.acknowledged_writes > 0


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
def test_the_command_tells_of_failures_and_of_runs_that_differ(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(seed: int, *, duration_ms: int, is_traced: bool = False) -> SeedResult:
        return _result(seed, failure="P1 is broken: so")

    monkeypatch.setattr(command, "run_seed", failing)
    assert main([*SIMULATE, "--seeds", "2", "--jobs", "1"]) == 1
    out = capsys.readouterr().out
    assert "again: kvorum simulate --only quorum --seed 7" in out
    assert "check failed: seed 7 gave trace d, and then" in out


@pytest.mark.process
def test_seeds_run_in_several_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SIMULATE, "--seeds", "3", "--jobs", "2"]) == 0
    assert "3 seeds, 0 failed" in capsys.readouterr().out

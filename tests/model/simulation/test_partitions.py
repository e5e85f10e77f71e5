"""Brokers with the real replicas and their controller, in worlds drawn from a number each.

A few worlds run every time, some of them new ones; ``kvorum simulate`` runs more.
Mistakes are made one by one to see that the worlds find them.
"""

import secrets
from collections import Counter
from pathlib import Path

import pytest
from tests.model.simulation.broker_mistakes import MISTAKES
from tests.model.simulation.mistake import Mistake

from kvorum.cli import main
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.partitions import promises
from kvorum.simulation.properties import catalogue
from kvorum.simulation.properties.catalogue import Property
from kvorum.simulation.run import SeedResult, run_seed

FIXED_SEEDS = range(9, 15)
FRESH_SEEDS = 12
OTHER_SEEDS = range(1, 60)
WITH_ALL_CHECKS = (4, 13, 15, 34, 53, 103)
"""Worlds with and without compaction, with static members that are refused, with fetch sessions,
with a topic that is deleted, with clients that log in, with a consumer group, with a share
group that has a dead-letter queue."""


def run_brokers(seed: int) -> SeedResult:
    return run_seed(seed, kind=WorldKind.BROKERS)


def test_worlds_known_for_long_have_every_fault_and_lose_nothing() -> None:
    counts: Counter[str] = Counter()
    for seed in FIXED_SEEDS:
        result = run_brokers(seed)
        assert result.failure is None, f"{result.failure}; again: {result.rerun}"
        assert result.counts["committed records"] > 100
        counts.update(result.counts)
    faults = ("kill", "power", "stop", "cut", "controller", "struck while joining")
    assert [fault for fault in faults if counts[fault] < 3] == []
    assert counts["leaders"] > 20
    assert counts["ISR changes"] > 50
    assert counts["deleted topics"] > 5
    assert counts["connections given up"] > 20


@pytest.mark.parametrize(
    "number",
    [0, *(pytest.param(number, marks=pytest.mark.slow) for number in range(1, FRESH_SEEDS))],
)
def test_a_fresh_world_loses_nothing(number: int) -> None:
    seed = secrets.randbelow(2**40)
    result = run_brokers(seed)
    assert result.failure is None, f"{result.failure}; again: {result.rerun}"


@pytest.mark.process
@pytest.mark.parametrize("seed", [5, 9, 26, 68, 91])
def test_a_world_repeats_itself_in_another_process(seed: int, tmp_path: Path) -> None:
    """Strings hash differently there, so an order that hangs on a map or a set would show.

    In world 9 brokers coordinate transactions, in world 26 there is a consumer group, in world 68 a
    share group.
    """
    trace = tmp_path / "trace"
    assert main(["simulate", "--only", "brokers", f"--seed={seed}", f"--trace={trace}"]) == 0
    assert "partition 0: leader" in trace.read_text()


@pytest.mark.process
def test_the_history_of_a_world_is_checked_again_from_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The world repeats itself in another process, without being asked for its history.

    In world 2 brokers coordinate transactions, and every record stays.
    """
    assert main(["simulate", "--only=brokers", "--seed=2", f"--history={tmp_path}"]) == 0
    assert f"kvorum check-history {tmp_path}/read_committed.jsonl" in capsys.readouterr().out
    for isolation in ("read_committed", "read_uncommitted"):
        options = ["--isolation-level", isolation, str(tmp_path / f"{isolation}.jsonl")]
        assert main(["check-history", *options]) == 0
        assert ": 0 operations" not in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake", [one for one in MISTAKES if one.seed is not None], ids=lambda mistake: mistake.what
)
def test_a_mistake_is_found(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The world known for it comes first; if the worlds have changed, another one shows it."""
    mistake.make(monkeypatch)
    assert mistake.seed is not None
    broken = (run_brokers(seed).broken for seed in (mistake.seed, *OTHER_SEEDS))
    assert mistake.breaks.id in broken


def test_each_property_has_a_mistake_that_breaks_it() -> None:
    found = [mistake for mistake in MISTAKES if mistake.seed is not None]
    assert {one.id for one in promises.ALL} <= {mistake.breaks.id for mistake in found}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_a_mistake_can_be_made(mistake: Mistake, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake.make(monkeypatch)


def test_every_property_is_listed_once() -> None:
    named = {one.id for one in vars(promises).values() if isinstance(one, Property)}
    assert [one.id for one in promises.ALL] == [
        *(f"P{number}" for number in range(34, 34 + len(promises.SAFETY))),
        *(f"L{number}" for number in range(10, 10 + len(promises.LIVENESS))),
    ]
    assert named == {one.id for one in promises.ALL}


@pytest.mark.slow
def test_a_few_worlds_are_enough_to_look_at_every_property() -> None:
    """A property that nothing exercises would hold whatever happens."""
    checks: Counter[str] = Counter()
    for seed in WITH_ALL_CHECKS:
        checks.update(run_brokers(seed).checks)
    assert [one.id for one in promises.ALL if not checks[one.id]] == []


@pytest.mark.process
def test_a_property_that_was_never_checked_is_shown_with_a_zero(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In world 7 nothing is compacted."""
    assert main(["simulate", "--only", "brokers", "--seed=7"]) == 0
    shown = {line.split()[0]: line.split()[-1] for line in capsys.readouterr().out.splitlines()}
    assert shown[promises.COMPACTED.id] == "0"
    assert int(shown[promises.ONE_RECORD.id]) > 0
    assert {one.id for one in (*catalogue.ALL, *promises.ALL)} <= shown.keys()

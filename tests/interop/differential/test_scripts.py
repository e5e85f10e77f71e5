"""Generated scripts on a real controller and on ours: equal answers, equal records.

``KVORUM_DIFFERENTIAL_SCRIPTS=n`` runs about n scripts instead of the quick set, and
``KVORUM_DIFFERENTIAL_SEED=s`` has each kind begin at another seed. A failure names kind and seed;
``KVORUM_DIFFERENTIAL_SHRINK=1`` drops the steps of failing scripts that do not matter.
"""

import os
from collections.abc import Iterator
from typing import Final

import pytest
from tests.interop.differential import bounds_scripts
from tests.interop.differential.dumped_logs import dump_differences
from tests.interop.differential.harness import Outcome, Pair, shrink
from tests.interop.differential.kinds import FIRST_SEED, KINDS, QUICK_SCRIPTS, SCRIPTS
from tests.interop.differential.script import Script
from tests.support.kafka.java import Java

IS_SHRINKING: Final = "KVORUM_DIFFERENTIAL_SHRINK" in os.environ
REPORTED_MAX: Final = 5

pytestmark = [pytest.mark.sample, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def pair(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both controllers, for all scripts one after the other."""
    with Pair(java, tmp_path_factory.mktemp("differential")) as pair:
        yield pair


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """The outcomes of the scripts that were run so far."""
    return []


def told(pair: Pair, outcome: Outcome) -> str:
    """Return the report of a failing script, made smaller if that is wanted."""
    if not IS_SHRINKING:
        return outcome.report()

    def still_fails(script: Script) -> bool:
        return bool(pair.run(script).findings)

    script = shrink(outcome.script, still_fails)
    return f"{pair.run(script).report()}\n{script.as_lines()}"


@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_records_are_equal(pair: Pair, outcomes: list[Outcome], kind: str) -> None:
    count = -(-SCRIPTS // len(KINDS))
    made = [pair.run(KINDS[kind](FIRST_SEED + number)) for number in range(count)]
    outcomes.extend(made)
    failing = [outcome for outcome in made if outcome.findings]
    assert not failing, f"{len(failing)} of {count}:\n" + "\n".join(
        told(pair, outcome) for outcome in failing[:REPORTED_MAX]
    )
    # A script that writes nothing compares little.
    assert sum(outcome.record_count for outcome in made) > count


def test_what_one_request_may_write(pair: Pair, outcomes: list[Outcome]) -> None:
    scripts = [bounds_scripts.crowded_requests()]
    if SCRIPTS > QUICK_SCRIPTS:
        scripts.append(bounds_scripts.crowded_broker())
    made = [pair.run(script) for script in scripts]
    outcomes.extend(made)
    assert [outcome.report() for outcome in made if outcome.findings] == []


def test_the_logs_are_equal_as_kafkas_own_tool_prints_them(
    pair: Pair, outcomes: list[Outcome], java: Java
) -> None:
    pair.stop()
    found = list(dump_differences(java, pair.sides, outcomes))
    assert found[:REPORTED_MAX] == []
    assert len(outcomes) >= min(SCRIPTS, len(KINDS))

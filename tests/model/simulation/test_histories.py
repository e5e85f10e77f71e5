"""Mistakes that the history of a world's clients shows by the anomaly that fits them.

Each is judged by the history alone; test_partitions.py has what the other properties find.
"""

import re

import pytest
from tests.model.simulation.broker_mistakes import MISTAKES
from tests.model.simulation.history_alone import anomalies_of_world, judge_by_history_alone
from tests.model.simulation.named_mistakes import NAMED_MISTAKES, NamedMistake
from tests.model.simulation.transaction_scenarios import SCENARIOS, Scenario
from tests.support.source_tree import ROOT

ROW = re.compile(r"^\| (.+?) \| `([\w-]+)` \| (\d+) \| (\d+) \|$", re.MULTILINE)
ROW_OF_SCENARIO = re.compile(r"^\| ([^|`]+?) \| `([\w-]+)` \|$", re.MULTILINE)
MISTAKES_BY_NAME = {mistake.what: mistake for mistake in MISTAKES}


@pytest.mark.slow
@pytest.mark.parametrize("named", NAMED_MISTAKES, ids=lambda named: named.mistake)
def test_the_history_of_a_world_names_a_mistake(
    named: NamedMistake, monkeypatch: pytest.MonkeyPatch
) -> None:
    MISTAKES_BY_NAME[named.mistake].make(monkeypatch)
    judge_by_history_alone(monkeypatch)
    assert named.anomaly in anomalies_of_world(named.seed)


@pytest.mark.slow
def test_the_history_of_a_world_without_a_mistake_names_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge_by_history_alone(monkeypatch)
    assert anomalies_of_world(2) == set()


def test_the_mistakes_that_a_history_names_are_written_down() -> None:
    text = (ROOT / "docs" / "verification.md").read_text(encoding="utf-8")
    assert ROW.findall(text) == [
        (one.mistake, one.anomaly.label, str(one.seed), str(one.searched)) for one in NAMED_MISTAKES
    ]
    assert ROW_OF_SCENARIO.findall(text) == [(one.mistake, one.anomaly.label) for one in SCENARIOS]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.mistake)
def test_a_scenario_is_sound_without_its_mistake(scenario: Scenario) -> None:
    assert scenario.play().anomalies() == set()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.mistake)
def test_the_history_of_a_scenario_names_its_mistake(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    MISTAKES_BY_NAME[scenario.mistake].make(monkeypatch)
    assert scenario.anomaly in scenario.play().anomalies()

"""Every scenario file leaves the trace that is stored in it.

A change of behaviour shows as a difference. To take it over, run with KVORUM_REWRITE_SCENARIOS=1
in the environment, and read what changed before committing it.
"""

import os
from pathlib import Path

import pytest
from tests.model.scenarios import script
from tests.model.scenarios.script import TRACE_FILES


def test_there_are_scenarios() -> None:
    assert len(TRACE_FILES) >= 8


@pytest.mark.parametrize("file", TRACE_FILES, ids=lambda file: file.stem)
def test_scenario(file: Path) -> None:
    stored = file.read_text(encoding="utf-8")
    traced = script.render(script.run(script.parse(stored)))
    if os.environ.get("KVORUM_REWRITE_SCENARIOS"):
        file.write_text(traced, encoding="utf-8")
    else:
        assert traced == stored


def test_a_scenario_leaves_the_same_trace_each_time() -> None:
    steps = script.parse(TRACE_FILES[0].read_text(encoding="utf-8"))
    assert script.render(script.run(steps)) == script.render(script.run(steps))

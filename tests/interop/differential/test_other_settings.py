"""Scripts on pairs of controllers with other settings, and at older levels.

How many run is decided as in `test_scripts`: by ``KVORUM_DIFFERENTIAL_SCRIPTS``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.interop.differential import periodic_scripts, silence_scripts
from tests.interop.differential.harness import Outcome, Pair
from tests.interop.differential.kinds import KINDS
from tests.interop.differential.script_seeds import FIRST_SEED, QUICK_SCRIPTS, SCRIPTS
from tests.support.kafka.java import Java

IS_WHOLE: Final = SCRIPTS > QUICK_SCRIPTS
SILENCES: Final = max(1, SCRIPTS // 50)
LEVELS: Final = (
    ("3.3-IV3", "3.5-IV2", "3.6-IV2", "3.7-IV1", "3.7-IV4", "3.9-IV0", "4.0-IV3", "4.1-IV1")
    if IS_WHOLE
    else ("3.6-IV2",)
)
SCRIPTS_AT_A_LEVEL: Final = max(1, SCRIPTS // 100)
KINDS_BY_LEVEL: Final = ("topics", "brokers", "partitions", "mixed")

pytestmark = pytest.mark.timeout(3600)


def reports(*outcomes: Outcome) -> list[str]:
    """Return what differed."""
    return [outcome.report() for outcome in outcomes if outcome.findings]


@pytest.mark.slow
def test_brokers_that_fall_silent(java: Java, tmp_path: Path) -> None:
    with Pair(java, tmp_path, overrides=silence_scripts.SETTINGS) as pair:
        outcomes = [
            pair.run(silence_scripts.silence_script(FIRST_SEED + number))
            for number in range(SILENCES)
        ]
    assert reports(*outcomes) == []


@pytest.mark.slow
def test_elections_that_nobody_asks_for(java: Java, tmp_path: Path) -> None:
    scripts = (periodic_scripts.preferred_leaders(), periodic_scripts.unclean_leaders())
    with Pair(java, tmp_path, overrides=periodic_scripts.SETTINGS) as pair:
        outcomes = [pair.run(script) for script in scripts]
    assert reports(*outcomes) == []


@pytest.mark.slow
@pytest.mark.parametrize("release", LEVELS)
def test_scripts_at_an_older_level(java: Java, tmp_path: Path, release: str) -> None:
    with Pair(java, tmp_path, release=release) as pair:
        outcomes = [
            pair.run(KINDS[kind](FIRST_SEED + number))
            for kind in KINDS_BY_LEVEL
            for number in range(SCRIPTS_AT_A_LEVEL)
        ]
    assert reports(*outcomes) == []

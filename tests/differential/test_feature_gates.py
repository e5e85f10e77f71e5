"""The same requests at each metadata.version: equal answers, and records of equal versions.

Each level is formatted for, lived at, and left for the highest one, which shows what becomes of a
cluster that was made long ago. ``KVORUM_DIFFERENTIAL_SCRIPTS`` makes the whole set of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.differential.comparing import as_text, is_array, is_object
from tests.differential.feature_scripts import LEVEL_CHAPTERS, begin_at_level, upgraded
from tests.differential.harness import Outcome, Pair, names_of
from tests.differential.metadata_log import LogTail
from tests.differential.script import AnyStep, Script
from tests.differential.story import script_of
from tests.interop.kafka.java import Java

from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION, MetadataVersion
from kvorum.wire.json_form import Json

IS_WHOLE: Final = "KVORUM_DIFFERENTIAL_SCRIPTS" in os.environ
QUICK_LEVELS: Final = (7, 14, 17)
LEVELS: Final = tuple(
    int(level) for level in MetadataVersion if level < LATEST_PRODUCTION_METADATA_VERSION
)
SCRIPTS_PER_LEVEL: Final = 12 if IS_WHOLE else 2
HIGHEST: Final = int(LATEST_PRODUCTION_METADATA_VERSION)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def scripts(level: int) -> list[Script]:
    """The scripts of one level: some at it, one that leaves it step by step, one at the highest.

    Brokers and controllers that do not support everything keep a cluster back; between scripts
    there are none.
    """
    made = [
        script_of(f"level {level}", seed, LEVEL_CHAPTERS, begin=begin_at_level)
        for seed in range(SCRIPTS_PER_LEVEL)
    ]
    between = [higher for higher in LEVELS if higher > level]
    stops = sorted(Random(level).sample(between, min(2, len(between))))
    steps = tuple(upgraded(stop) for stop in (*stops, HIGHEST))
    leaving = Script(f"leaving {level}", 0, tuple(_woven(made[0].steps, steps)))
    left = Script(f"left {level}", 0, (upgraded(HIGHEST),))
    return [*made, leaving, left, made[1]]


def _woven(steps: Sequence[AnyStep], upgrades: Sequence[AnyStep]) -> list[AnyStep]:
    part = len(steps) // (len(upgrades) + 1)
    woven: list[AnyStep] = []
    for index, upgrade in enumerate(upgrades):
        woven.extend(steps[index * part : (index + 1) * part])
        woven.append(upgrade)
    return [*woven, *steps[len(upgrades) * part :]]


def first_records(pair: Pair) -> list[Json]:
    """What each side wrote when it became active; features come in the order of their names."""
    return [
        sorted_by_name(
            names_of(side, set()).records("", LogTail(side.folder / "data").read(), is_placed=False)
        )
        for side in pair.sides
    ]


def sorted_by_name(value: Json) -> Json:
    """Return a value with the lists of named things sorted."""
    if is_object(value):
        return {name: sorted_by_name(each) for name, each in value.items()}
    if not is_array(value):
        return value
    sorted_parts = [sorted_by_name(each) for each in value]
    if all(is_object(part) and "minSupportedVersion" in part for part in sorted_parts):
        return sorted(sorted_parts, key=as_text)
    return sorted_parts


@pytest.mark.parametrize("level", LEVELS if IS_WHOLE else QUICK_LEVELS)
def test_a_level_lets_the_same_be_done_and_written(java: Java, tmp_path: Path, level: int) -> None:
    release = MetadataVersion(level).text
    with Pair(java, tmp_path, release=release) as pair:
        real, ours = first_records(pair)
        assert real == ours
        outcomes: list[Outcome] = [pair.run(script) for script in scripts(level)]
        assert pair.ours.view.settings.features["metadata.version"] == HIGHEST
    failing = [outcome.report() for outcome in outcomes if outcome.findings]
    assert not failing, "\n".join(failing[:5])

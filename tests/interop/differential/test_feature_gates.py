"""The same requests at each metadata.version: equal answers, and records of equal versions.

Each level is formatted for, lived at, and left for the highest one, which shows what becomes of a
cluster that was made long ago. ``KVORUM_DIFFERENTIAL_SCRIPTS`` makes the whole set of it.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.differential import partition_scripts
from tests.interop.differential.comparing import as_text, is_array, is_object
from tests.interop.differential.feature_scripts import LEVEL_CHAPTERS
from tests.interop.differential.harness import Outcome, Pair, names_of
from tests.interop.differential.metadata_log import LogTail
from tests.interop.differential.script import AnyStep, Script, Step, feature_level
from tests.interop.differential.sides import Side
from tests.interop.differential.story import script_of
from tests.support.golden_data import log_records, snapshot_records, snapshots
from tests.support.kafka.java import Java

from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION, MetadataVersion
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.primitives import Message

IS_WHOLE: Final = "KVORUM_DIFFERENTIAL_SCRIPTS" in os.environ
QUICK_LEVELS: Final = (7, 14, 17)
LEVELS: Final = tuple(
    int(level) for level in MetadataVersion if level < LATEST_PRODUCTION_METADATA_VERSION
)
SCRIPTS_PER_LEVEL: Final = 12 if IS_WHOLE else 2
SNAPSHOTS: Final = {"metadata.log.max.record.bytes.between.snapshots": "2500"}
NAMED: Final = frozenset({"minSupportedVersion", "minSupportedLevel", "entityType", "port"})
HIGHEST: Final = int(LATEST_PRODUCTION_METADATA_VERSION)

pytestmark = pytest.mark.timeout(600)


def scripts(level: int) -> list[Script]:
    """The scripts of one level: some at it, one that leaves it step by step, one at the highest.

    Brokers and controllers that do not support everything keep a cluster back; between scripts
    there are none.
    """
    made = [
        script_of(f"level {level}", seed, LEVEL_CHAPTERS, begin=partition_scripts.begin)
        for seed in range(SCRIPTS_PER_LEVEL)
    ]
    between = [higher for higher in LEVELS if higher > level]
    stops = sorted(Random(level).sample(between, min(2, len(between))))
    steps = tuple(_upgraded(stop) for stop in (*stops, HIGHEST))
    leaving = Script(f"leaving {level}", 0, tuple(_woven(made[0].steps, steps)))
    return [*made, leaving, Script(f"left {level}", 0, (_upgraded(HIGHEST),)), made[1]]


def _upgraded(level: int) -> Step:
    return feature_level("metadata.version", level, upgrade_type=1)


def _woven(steps: Sequence[AnyStep], upgrades: Sequence[AnyStep]) -> list[AnyStep]:
    part = len(steps) // (len(upgrades) + 1)
    woven: list[AnyStep] = []
    for index, upgrade in enumerate(upgrades):
        woven.extend(steps[index * part : (index + 1) * part])
        woven.append(upgrade)
    return [*woven, *steps[len(upgrades) * part :]]


def first_records(pair: Pair) -> list[Json]:
    """The records of each side when it became active; features come in the order of their names."""
    return [
        sorted_by_name(
            names_of(side, set()).records("", LogTail(side.node.data).read(), is_placed=False)
        )
        for side in pair.sides
    ]


def sorted_by_name(value: Json) -> Json:
    if is_object(value):
        return {name: sorted_by_name(each) for name, each in value.items()}
    if not is_array(value):
        return value
    sorted_parts = [sorted_by_name(each) for each in value]
    if all(is_object(part) and NAMED & part.keys() for part in sorted_parts):
        return sorted(sorted_parts, key=as_text)
    return sorted_parts


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS if IS_WHOLE else QUICK_LEVELS)
def test_a_level_lets_the_same_be_done_and_written(java: Java, tmp_path: Path, level: int) -> None:
    release = MetadataVersion(level).text
    with Pair(java, tmp_path, overrides=SNAPSHOTS, release=release) as pair:
        real, ours = first_records(pair)
        assert real == ours
        outcomes: list[Outcome] = [pair.run(script) for script in scripts(level)]
        assert pair.ours.view.settings.features["metadata.version"] == HIGHEST
    failing = [outcome.report() for outcome in outcomes if outcome.findings]
    assert not failing, "\n".join(failing[:5])
    assert all(compared_snapshots(side) for side in pair.sides)


def compared_snapshots(side: Side) -> int:
    """Compare the snapshots of a side with what ours come to for the same log; how many?"""
    directory = side.node.metadata_log
    image, offset, count = MetadataImage(), 0, 0
    for end, file in snapshots(directory).items():
        image = image.apply_all(
            record for record in log_records(directory, offset) if record[2] < end
        )
        offset = end
        topics = frozenset(image.topics.ids)
        wanted = [
            (message, version)
            for message, version, _ in snapshot_records(file, end)
            # Real Kafka keeps those of topics that came and went between two images.
            if not is_leftover(message, topics)
        ]
        made = [(message, version) for message, version in image_records(image)]
        assert told(made) == told(wanted), f"{side.name} {file.name}"
        count += 1
    return count


def is_leftover(message: Message, topics: frozenset[str]) -> bool:
    """Tell whether a record is the configuration of a topic that is not there."""
    return (
        isinstance(message, ConfigRecord)
        and message.resource_type == ResourceType.TOPIC
        and message.resource_name not in topics
    )


def told(records: Iterable[tuple[Message, int]]) -> list[str]:
    """Return records as texts, sorted: they and their lists of named things have no order."""
    rows = [
        {"type": message.NAME, "version": version, "data": to_json(message, version)}
        for message, version in records
    ]
    return sorted(as_text(sorted_by_name(row)) for row in rows)

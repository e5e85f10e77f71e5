"""Groups that change between the classic and the consumer protocol: Kafka's shard and ours."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from tests.interop.group_coordinator_comparison import group_coordinator_oracle
from tests.interop.line_oracle import Oracle
from tests.interop.migration_script import MigrationScript
from tests.interop.played_scripts import play_scripts
from tests.support.kafka.java import Java

from kvorum.groups.migration_policy import MigrationPolicy
from kvorum.groups.settings import ConsumerGroupSettings, GroupCoordinatorSettings

SCRIPTS: Final = 240
SAMPLE: Final = 10
"""The number of scripts of the sample that is not slow."""
COMMON: Final = (
    *("upgrade", "downgrade", "classic member STABLE"),
    *("consumer Empty", "consumer Assigning", "consumer Reconciling", "consumer Stable"),
    *("state PreparingRebalance", "state CompletingRebalance", "state Stable"),
    *("error 22", "error 23", "error 25", "error 27", "error 69", "error 82"),
)
RARE: Final = (
    "stale downgrade",
    "fresh downgrade",
    "classic member UNREVOKED_PARTITIONS",
    "classic member UNRELEASED_PARTITIONS",
)
"""The changes and states that a sample does not always come to."""
POLICIES: Final = (
    MigrationPolicy.BIDIRECTIONAL,
    MigrationPolicy.BIDIRECTIONAL,
    MigrationPolicy.UPGRADE,
    MigrationPolicy.DOWNGRADE,
    MigrationPolicy.DISABLED,
)


def _settings(random: Random) -> GroupCoordinatorSettings:
    return GroupCoordinatorSettings(
        consumer=ConsumerGroupSettings(
            max_size=random.choice((3, 100)),
            assignors=random.choice((("uniform", "range"), ("range", "uniform"))),
            assignment_interval_ms=random.choice((0, 1_000)),
            migration_policy=random.choice(POLICIES),
        ),
        group_max_size=random.choice((2, 100, 100)),
        group_initial_rebalance_delay_ms=random.choice((0, 3_000)),
        offset_metadata_max_bytes=10,
        offsets_retention_ms=2 * 60_000,
    )


def _play(oracle: Oracle, random: Random, scripts: int) -> Counter[str]:
    drawn = ((_settings(random), MigrationScript(random)) for _ in range(scripts))
    return play_scripts(oracle, drawn)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_step_gives_what_kafka_gives(java: Java) -> None:
    with group_coordinator_oracle(java) as oracle:
        kinds = _play(oracle, Random(1), SCRIPTS)
    for kind in COMMON:
        assert kinds[kind] > SCRIPTS // 20, (kind, kinds)
    for rare in RARE:
        assert kinds[rare], (rare, kinds)


@pytest.mark.sample
def test_a_sample_of_steps_gives_what_kafka_gives(java: Java) -> None:
    """Kafka draws the ids of members: how often a sample comes to what is rare is chance."""
    with group_coordinator_oracle(java) as oracle:
        kinds = _play(oracle, Random(8), SAMPLE)
    assert kinds["consumer Stable"], kinds

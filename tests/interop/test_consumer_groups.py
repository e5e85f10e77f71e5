"""Groups of the consumer protocol (KIP-848): Kafka's GroupCoordinatorShard and ours, by steps."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from tests.interop.consumer_group_script import ConsumerGroupScript
from tests.interop.group_coordinator_comparison import group_coordinator_oracle
from tests.interop.line_oracle import Oracle
from tests.interop.played_scripts import play_scripts
from tests.support.kafka.java import Java

from kvorum.groups.migration_policy import MigrationPolicy
from kvorum.groups.settings import ConsumerGroupSettings, GroupCoordinatorSettings

SCRIPTS: Final = 240
SAMPLE: Final = 5
"""The number of scripts of the sample that is not slow."""


def _settings(random: Random) -> GroupCoordinatorSettings:
    return GroupCoordinatorSettings(
        consumer=ConsumerGroupSettings(
            max_size=random.choice((5, 100, 100)),
            assignors=random.choice((("uniform", "range"), ("range", "uniform"))),
            assignment_interval_ms=random.choice((0, 1_000, 1_000)),
            regex_refresh_interval_ms=random.choice((600_000, 60_000)),
            migration_policy=MigrationPolicy.DISABLED,
        ),
        group_max_size=100,
        group_initial_rebalance_delay_ms=0,
        offset_metadata_max_bytes=10,
        offsets_retention_ms=2 * 60_000,
    )


def _play(oracle: Oracle, random: Random, scripts: int) -> Counter[str]:
    drawn = ((_settings(random), ConsumerGroupScript(random)) for _ in range(scripts))
    return play_scripts(oracle, drawn)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_step_gives_what_kafka_gives(java: Java) -> None:
    with group_coordinator_oracle(java) as oracle:
        kinds = _play(oracle, Random(1), SCRIPTS)
    for state in ("Empty", "Assigning", "Reconciling", "Stable"):
        assert kinds[f"consumer {state}"] > SCRIPTS // 4, kinds
    for state in ("STABLE", "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS"):
        assert kinds[f"member {state}"] > SCRIPTS // 4, kinds
    assert kinds["fire rebalance"], kinds
    for error in ("error 25", "error 110", "error 111", "error 113"):
        assert kinds[error] > SCRIPTS // 10, kinds


@pytest.mark.sample
def test_a_sample_of_steps_gives_what_kafka_gives(java: Java) -> None:
    """Kafka draws the ids of members: how often a sample comes to what is rare is chance."""
    with group_coordinator_oracle(java) as oracle:
        kinds = _play(oracle, Random(9), SAMPLE)
    assert kinds["consumer Stable"] > SAMPLE, kinds

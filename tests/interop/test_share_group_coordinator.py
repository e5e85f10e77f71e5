"""Groups of the share protocol (KIP-932): Kafka's GroupCoordinatorShard and ours, by steps."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from tests.interop.group_coordinator_comparison import group_coordinator_oracle
from tests.interop.line_oracle import Oracle
from tests.interop.played_scripts import play_scripts
from tests.interop.share_group_script import ShareGroupScript
from tests.support.kafka.java import Java

from kvorum.groups.migration_policy import MigrationPolicy
from kvorum.groups.settings import (
    ConsumerGroupSettings,
    GroupCoordinatorSettings,
    ShareGroupSettings,
)

SCRIPTS: Final = 160
SAMPLE: Final = 5
"""The number of scripts of the sample that is not slow."""


def _settings(random: Random) -> GroupCoordinatorSettings:
    return GroupCoordinatorSettings(
        share=ShareGroupSettings(
            max_size=random.choice((3, 100, 100)),
            assignment_interval_ms=random.choice((0, 1_000, 1_000)),
            initialize_retry_ms=random.choice((1, 30_000)),
        ),
        consumer=ConsumerGroupSettings(migration_policy=MigrationPolicy.DISABLED),
        group_max_size=100,
        group_initial_rebalance_delay_ms=0,
        offset_metadata_max_bytes=10,
        offsets_retention_ms=2 * 60_000,
    )


def _play(oracle: Oracle, random: Random, scripts: int) -> Counter[str]:
    drawn = ((_settings(random), ShareGroupScript(random)) for _ in range(scripts))
    return play_scripts(oracle, drawn)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_each_step_gives_what_kafka_gives(java: Java) -> None:
    with group_coordinator_oracle(java) as oracle:
        kinds = _play(oracle, Random(1), SCRIPTS)
    wanted = ("share Empty", "share Stable", "subscriptions Heterogeneous", "initialize_share")
    for kind in (*wanted, "alter_share_offsets", "delete_share_offsets", "state_topic"):
        assert kinds[kind] > SCRIPTS // 4, kinds
    for kind in ("error 25", "error 68", "error 69", "error 81", "error 110", "fire session"):
        assert kinds[kind] > SCRIPTS // 10, kinds


@pytest.mark.sample
def test_a_sample_of_steps_gives_what_kafka_gives(java: Java) -> None:
    with group_coordinator_oracle(java) as oracle:
        kinds = _play(oracle, Random(9), SAMPLE)
    assert kinds["share Stable"] > SAMPLE, kinds

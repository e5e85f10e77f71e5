"""Scripts on pairs of controllers with other settings, and at older levels.

How many run is decided as in `test_scripts`: by ``KVORUM_DIFFERENTIAL_SCRIPTS``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.interop.differential import silence_scripts
from tests.interop.differential.config_scripts import SET, TOPIC, one_operation
from tests.interop.differential.harness import Outcome, Pair
from tests.interop.differential.kinds import FIRST_SEED, KINDS, QUICK_SCRIPTS, SCRIPTS
from tests.interop.differential.script import (
    TIMEOUT_MS,
    Script,
    Step,
    created,
    heartbeat,
    started,
    topic,
)
from tests.support.kafka.java import Java

SETTINGS: Final[Mapping[str, str]] = {
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "1",
    "unclean.leader.election.interval.ms": "500",
}
PARTITIONS: Final = 4


def preferred_leaders() -> Script:
    """Return a script in which leaderships come back to a broker that is in sync again."""
    full = [
        {
            "partitionIndex": index,
            "leaderEpoch": f"$leader_epoch:t:{index}",
            "newIsr": f"$full:t:{index}",
            "newIsrWithEpochs": f"$full_with_epochs:t:{index}",
            "partitionEpoch": f"$partition_epoch:t:{index}",
        }
        for index in range(PARTITIONS)
    ]
    topics = [{"topicId": "$topic:t", "partitions": full}]
    alter = {"brokerId": 2, "brokerEpoch": "$epoch:2", "topics": topics}
    steps = (
        *(step for broker in (1, 2, 3) for step in started(broker)),
        created(topic("t", [[1, 2, 3]] * PARTITIONS)),
        Step("BrokerHeartbeat", 2, heartbeat(1, wantFence=True)),
        Step("BrokerHeartbeat", 2, heartbeat(1)),
        # The new ISR of each, and then its old leader.
        Step("AlterPartition", 3, alter, awaited=2 * PARTITIONS),
    )
    return Script("preferred-leaders", 0, steps)


def unclean_leaders() -> Script:
    """Return a script in which a topic without a leader is allowed an unclean leader."""
    leader = {"brokerId": 1, "brokerEpoch": "$epoch:1"}
    shrink = {"partitionIndex": 0, "newIsr": [1], "newIsrWithEpochs": [leader]}
    alter = {**leader, "topics": [{"topicId": "$topic:t", "partitions": [shrink]}]}
    allow = one_operation(TOPIC, "t", "unclean.leader.election.enable", SET, "true")
    steps = (
        *(step for broker in (1, 2) for step in started(broker)),
        created(topic("t", [[1, 2]]), topic("other", [[1, 2]])),
        Step("AlterPartition", 3, alter),
        Step("BrokerHeartbeat", 2, heartbeat(1, wantFence=True)),
        # The config, and then the leader that it allows.
        Step("IncrementalAlterConfigs", 1, allow, awaited=2),
        Step("ElectLeaders", 2, {"electionType": 1, "timeoutMs": TIMEOUT_MS}),
    )
    return Script("unclean-leaders", 0, steps)


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
def test_elections_that_no_node_asks_for(java: Java, tmp_path: Path) -> None:
    scripts = (preferred_leaders(), unclean_leaders())
    with Pair(java, tmp_path, overrides=SETTINGS) as pair:
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

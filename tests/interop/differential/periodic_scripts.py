"""What the controller does unasked, in scripts written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tests.interop.differential.bodies import TIMEOUT_MS, created, heartbeat, started, topic
from tests.interop.differential.script import Script, Step

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auto.leader.rebalance.enable": "true",
        "leader.imbalance.check.interval.seconds": "1",
        "unclean.leader.election.interval.ms": "500",
    }
)
PARTITIONS: Final = 4
TOPIC_TYPE: Final = 2


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
    alter = {
        "brokerId": 2,
        "brokerEpoch": "$epoch:2",
        "topics": [{"topicId": "$topic:t", "partitions": full}],
    }
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
    """Return a script in which a topic that nobody leads is allowed an unclean leader."""
    shrink = {
        "partitionIndex": 0,
        "newIsr": [1],
        "newIsrWithEpochs": [{"brokerId": 1, "brokerEpoch": "$epoch:1"}],
    }
    alter = {
        "brokerId": 1,
        "brokerEpoch": "$epoch:1",
        "topics": [{"topicId": "$topic:t", "partitions": [shrink]}],
    }
    allow = {"name": "unclean.leader.election.enable", "configOperation": 0, "value": "true"}
    resource = {"resourceType": TOPIC_TYPE, "resourceName": "t", "configs": [allow]}
    steps = (
        *(step for broker in (1, 2) for step in started(broker)),
        created(topic("t", [[1, 2]]), topic("other", [[1, 2]])),
        Step("AlterPartition", 3, alter),
        Step("BrokerHeartbeat", 2, heartbeat(1, wantFence=True)),
        # The config, and then the leader that it allows.
        Step("IncrementalAlterConfigs", 1, {"resources": [resource]}, awaited=2),
        Step("ElectLeaders", 2, {"electionType": 1, "timeoutMs": TIMEOUT_MS}),
    )
    return Script("unclean-leaders", 0, steps)

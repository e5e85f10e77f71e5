"""A share coordinator that moves between a real broker and ours, with the state that it keeps."""

import re
from collections.abc import Iterator
from random import Random
from typing import Final

import pytest
from tests.interop.asked_broker import serves_share
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults, kind_of_controllers
from tests.interop.share_state_script import GROUPS, TOPICS, UNKNOWN, Answer, Script, Side, Step
from tests.support.raw_client import RawClient
from tests.support.topics import topic_id
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.share_coordinator.share_state_rpc import READ, READ_SUMMARY
from kvorum.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from kvorum.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest

REAL, OURS = 11, 12
STATE: Final = "__share_group_state"
STEPS: Final = 150
LATEST_LEADER_EPOCH: Final = 3
"""No request of a script has a later one."""
UNKNOWN_ID: Final = b"none has this id"


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    settings = {
        # Real brokers keep to the count that they have had at their start.
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.snapshot.update.records.per.snapshot": "4",
    }
    with run_brokers(kind_of_controllers(), brokers=2, ours={OURS}, settings=settings) as made:
        made.make_topic(STATE, f"{OURS}:{REAL}", "cleanup.policy=delete")
        for name, count in TOPICS.items():
            made.make_topic(name, ",".join([f"{OURS}:{REAL}"] * count))
        yield made
        assert faults(made.brokers[OURS]) == []
        assert not re.search(r"IllegalState|Received fatal error", made.brokers[REAL].log_text)


def states(side: Side) -> list[Answer]:
    """Return what a coordinator has of each share partition that a script knows."""
    found: list[Answer] = []
    for group in GROUPS:
        read = [
            (name, [ReadShareGroupStateRequest.PartitionData(one, LATEST_LEADER_EPOCH)])
            for name, count in TOPICS.items()
            for one in range(count)
        ]
        summed = [
            (name, [ReadShareGroupStateSummaryRequest.PartitionData(one)])
            for name, count in TOPICS.items()
            for one in range(count)
        ]
        found.append(Step(READ, 0, group, read).take(side))
        found.append(Step(READ_SUMMARY, 1, group, summed).take(side))
    return found


@pytest.mark.slow
def test_the_state_goes_on_under_another_coordinator(cluster: BrokerCluster) -> None:
    script = Script(Random(3))
    before: list[Answer] = []
    for leader, follower in ((OURS, REAL), (REAL, OURS), (OURS, REAL), (REAL, OURS)):
        cluster.let_lead(STATE, leader, follower)
        with RawClient(cluster.brokers[leader].address) as client:
            ids = {name: topic_id(client, name) for name in TOPICS}
            share = SharePartitionKey("group", ids["one"], 0)
            wait_for(lambda: serves_share(client, share), "the state is loaded")  # noqa: B023 - over before the next
            side = Side(client, {**ids, UNKNOWN: UNKNOWN_ID})
            if before:
                assert states(side) == before
            for step in script.steps(STEPS):
                step.take(side)
            before = states(side)

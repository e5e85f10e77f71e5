"""Share groups whose leaders and coordinators are of two kinds: real brokers and ours.

A leader of either kind has the state of its share partitions kept by a share coordinator of the
other, where the group coordinator, of any kind, has begun it.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest
from tests.interop.asked_broker import serves_share
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults, kind_of_controllers
from tests.interop.clients.confluent import read_to_end, send
from tests.interop.clients.java_share import JavaShareMember
from tests.interop.dead_letters import COPIES, QUEUE, REJECT, DyingGroup, Range, Source, letters
from tests.interop.share_state_script import done_up_to
from tests.support.group_configs import configure_group
from tests.support.kafka.java import Java
from tests.support.raw_client import RawClient
from tests.support.topics import topic_id
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)

REAL, OURS = 11, 12
LED_BY: Final = {REAL: "led-by-real", OURS: "led-by-ours"}
"""The topics by the broker that leads their only partition."""
GROUPS: Final = "__consumer_offsets"
STATE: Final = "__share_group_state"
COUNT: Final = 20
SETTINGS: Final = {
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    # Real brokers keep to the count that they have had at their start.
    "share.coordinator.state.topic.num.partitions": "1",
}


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    """Each broker leads a topic; a test moves the coordinators of groups and of their state."""
    with run_brokers(kind_of_controllers(), brokers=2, ours={OURS}, settings=SETTINGS) as made:
        made.make_topic(GROUPS, f"{REAL}:{OURS}", "cleanup.policy=compact")
        made.make_topic(STATE, f"{OURS}:{REAL}", "cleanup.policy=delete")
        made.make_topic(LED_BY[REAL], f"{REAL}:{OURS}")
        made.make_topic(LED_BY[OURS], f"{OURS}:{REAL}")
        yield made
        assert faults(made.brokers[OURS]) == []
        assert not re.search(r"IllegalState|Received fatal error", made.brokers[REAL].log_text)


def lags(client: RawClient, group: str) -> dict[str, list[int]]:
    """Return how many records of each partition a group has not had, by topic."""
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, None)])
    (found,) = client.ask(request, DescribeShareGroupOffsetsResponse, 1).groups
    return {topic.topic_name: [one.lag for one in topic.partitions] for topic in found.topics}


@pytest.mark.slow
@pytest.mark.parametrize("groups", [REAL, OURS], ids=["groups at a real one", "groups at ours"])
@pytest.mark.parametrize(
    ("leader", "coordinator"), [(REAL, OURS), (OURS, REAL)], ids=["real leader", "our leader"]
)
def test_a_leader_has_its_state_kept_by_the_other_kind(
    cluster: BrokerCluster, java: Java, leader: int, coordinator: int, groups: int
) -> None:
    cluster.let_lead(STATE, coordinator, leader)
    cluster.let_lead(GROUPS, groups, OURS if groups == REAL else REAL)
    topic = LED_BY[leader]
    group = f"{topic}-{groups}"
    values = [f"value {number}" for number in range(COUNT)]
    with (
        RawClient(cluster.brokers[coordinator].address) as client,
        closing(JavaShareMember(java, cluster.servers, group, topic)) as member,
    ):
        share = SharePartitionKey(group, topic_id(client, topic), 0)
        wait_for(lambda: serves_share(client, share), "the state is loaded")

        def begins() -> bool:
            """Send until the group has begun, at the end of the topic."""
            send(cluster.servers, topic, [{"value": b"begin"}])
            return bool(member.delivered)

        wait_for(begins, "the group has begun")
        send(cluster.servers, topic, [{"value": value.encode()} for value in values])
        wait_for(lambda: set(values) <= set(member.values), "everything is delivered")
        end = len(read_to_end(cluster.servers, [(topic, 0)]))
        wait_for(
            lambda: done_up_to(client, share) == end,
            "the coordinator has all as accepted",
            otherwise=lambda: (done_up_to(client, share), end),
        )
        assert member.problems == []
    send(cluster.servers, topic, [{"value": value.encode()} for value in values])
    with RawClient(cluster.brokers[groups].address) as client:
        assert lags(client, group) == {topic: [COUNT]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leader", "other"), [(REAL, OURS), (OURS, REAL)], ids=["real leader", "our leader"]
)
def test_a_leader_writes_dead_letters_to_a_queue_of_the_other_kind(
    cluster: BrokerCluster, leader: int, other: int
) -> None:
    name = LED_BY[leader]
    queue = f"dlq.{name}"
    cluster.let_lead(STATE, other, leader)
    send(cluster.servers, name, [{"key": b"key", "value": b"dying"}])
    with (
        RawClient(cluster.brokers[leader].address) as client,
        RawClient(cluster.brokers[other].address) as coordinator,
    ):
        source = Source(name, topic_id(client, name), 1)
        share = SharePartitionKey(f"dying at {leader}", source.topic_id, 0)
        wait_for(lambda: serves_share(coordinator, share), "the state is loaded")
        group = DyingGroup(share.group_id, source, client, coordinator)
        configure_group(client, share.group_id, {QUEUE: queue, COPIES: "true"})
        # A broker that knows the queue knows what came before: the configuration of the group.
        cluster.make_topic(queue, f"{other}:{leader}", "errors.deadletterqueue.group.enable=true")
        group.begin()
        group.acquire(1)
        dying = [Range(0, 0, 0)]
        group.acknowledge(dying, REJECT)
        wait_for(lambda: group.are_archived(dying), "the record is archived")
    (original, *_) = read_to_end(cluster.servers, [(name, 0)])
    (letter,) = letters(cluster.brokers[other].address, queue, share.group_id)
    assert (letter.key, letter.value) == (original.key(), original.value())
    assert dict(letter.headers)["__dlq.errors.topic"] == name.encode()

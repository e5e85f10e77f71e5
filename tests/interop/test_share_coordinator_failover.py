"""A share group goes on when brokers die that coordinate it, or its state, or lead its topic."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import read_to_end, send
from tests.interop.clients.java_share import JavaShareMember
from tests.interop.share_state_script import done_up_to
from tests.support.kafka.java import Java
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from kvorum.testing import Cluster
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

TOPIC: Final = "t"
GROUP: Final = "g"
COUNT: Final = 20
SETTINGS: Final = {
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.share.record.lock.duration.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=3, overrides=SETTINGS) as cluster:
        cluster.create_topic(TOPIC, replication_factor=3)
        yield cluster


def ask_about(cluster: Cluster, topic: str) -> Any:
    """Return what the first broker that lives says of a topic and of the brokers."""
    request = MetadataRequest([MetadataRequestTopic(name=topic)])

    def answer() -> Any:
        for address in cluster.bootstrap_servers.split(","):
            try:
                with RawClient(address) as client:
                    return client.ask(request, MetadataResponse, 12)
            except ConnectionError:
                continue
        return None

    return wait_for(answer, "a broker answers")


def leader_of(cluster: Cluster, topic: str) -> int:
    """Return the broker that leads the only partition of a topic."""
    leader: int = ask_about(cluster, topic).topics[0].partitions[0].leader_id
    return leader


def kept_up_to(cluster: Cluster) -> int | None:
    """Return the offset before which the state has everything as done with; None without one."""
    described = ask_about(cluster, SHARE_GROUP_STATE_TOPIC)
    addresses = {one.node_id: f"{one.host}:{one.port}" for one in described.brokers}
    coordinator = addresses.get(described.topics[0].partitions[0].leader_id)
    if coordinator is None:
        return None
    (topic,) = ask_about(cluster, TOPIC).topics
    with RawClient(coordinator) as client:
        return done_up_to(client, SharePartitionKey(GROUP, topic.topic_id, 0))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_everything_is_delivered_and_done_with_though_brokers_die(
    cluster: Cluster, java: Java
) -> None:
    servers = cluster.bootstrap_servers
    with closing(JavaShareMember(java, servers, GROUP, TOPIC)) as member:

        def begins() -> bool:
            """Send until the group has begun, at the end of the topic."""
            send(servers, TOPIC, [{"value": b"begin"}])
            return bool(member.delivered)

        wait_for(begins, "the group has begun")
        for number, topic in enumerate((SHARE_GROUP_STATE_TOPIC, TOPIC, GROUP_METADATA_TOPIC)):
            dying = leader_of(cluster, topic)
            values = [f"value {number} {one}" for one in range(COUNT)]
            cluster.kill(dying)
            send(servers, TOPIC, [{"value": value.encode()} for value in values])
            wait_for(
                lambda: set(values) <= set(member.values),  # noqa: B023 - over before the next
                f"everything is delivered after the death of the leader of {topic}",
            )
            cluster.restart(dying)
        end = len(read_to_end(servers, [(TOPIC, 0)]))
        wait_for(
            lambda: kept_up_to(cluster) == end,
            "the coordinator has all as done with",
            otherwise=lambda: (kept_up_to(cluster), end),
        )

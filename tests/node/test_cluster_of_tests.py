"""Helps of a cluster for tests: topics, leaders of partitions, full disks, fixtures, time-outs."""

import asyncio
import re
from collections.abc import Iterator

import pytest
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.topics import read_topics
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.metadata.configs_image import ResourceType
from kvorum.node.embedded.topics import TopicError, UnknownPartitionError
from kvorum.testing import AsyncCluster, Cluster, ClusterFactory
from kvorum.wire.error_codes import ErrorCode


@pytest.fixture(scope="module")
def brokers() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=2) as cluster:
        yield cluster


def test_a_created_topic_can_be_written_at_once(brokers: Cluster) -> None:
    brokers.create_topic("orders", 4)
    assert {brokers.leader_of("orders", index) for index in range(4)} == {101, 102}
    leader_id = brokers.leader_of("orders")
    assert leader_id is not None
    with RawClient(brokers.bootstrap_servers.split(",")[leader_id - 101]) as client:
        assert produce(client, "orders", batch(b"apple")).error_code == ErrorCode.NONE


def test_a_topic_has_the_replicas_and_the_settings_it_is_given(brokers: Cluster) -> None:
    brokers.create_topic(
        "kept", replication_factor=2, configs={"retention.ms": 5000, "preallocate": True}
    )
    image = brokers.node(1).shared_server.loader.published
    topic = image.topics.by_name("kept")
    assert topic is not None
    assert sorted(topic.partitions[0].replicas) == [101, 102]
    assert dict(image.configs.of(ResourceType.TOPIC, "kept")) == {
        "retention.ms": "5000",
        "preallocate": "true",
    }


def test_what_kafka_refuses_is_said_with_its_reason(brokers: Cluster) -> None:
    brokers.create_topic("once")
    with pytest.raises(TopicError, match=r"^topic once: TOPIC_ALREADY_EXISTS: Topic 'once' al"):
        brokers.create_topic("once")
    with pytest.raises(TopicError, match="INVALID_REPLICATION_FACTOR"):
        brokers.create_topic("wide", replication_factor=3)
    with pytest.raises(UnknownPartitionError, match=r"^there is no topic nowhere$"):
        brokers.leader_of("nowhere")
    with pytest.raises(LookupError, match=r"^topic once has 1 partitions, and no 7$"):
        brokers.leader_of("once", 7)


def test_a_topic_of_a_parted_cluster_is_given_up_with_the_reason() -> None:
    with Cluster(controllers=3, brokers=1) as cluster:
        cluster.partition([1], [2], [3], [101])
        with pytest.raises(TimeoutError) as caught:
            cluster.create_topic("orders", timeout_s=0.5)
        assert isinstance(caught.value, TopicError)
        assert re.fullmatch(
            r"topic orders has no leaders after 0\.5 s; leader of the quorum: (none|controller \d)"
            r"; running controllers: 1, 2, 3 \(of 1, 2, 3; a majority is 2\); "
            r"parted: 1 from 2 from 3 from 101",
            str(caught.value),
        )
        assert caught.value.__suppress_context__
        assert caught.value.__cause__ is None
        cluster.heal()
        cluster.wait_for_leader()
        cluster.create_topic("payments")


async def test_topics_in_a_loop_of_ones_own() -> None:
    async with AsyncCluster(controllers=1, brokers=1) as cluster:
        await cluster.create_topic("orders", 2)
        assert cluster.leader_of("orders", 1) == 1
        topics = await asyncio.to_thread(read_topics, cluster.bootstrap_servers)
        assert topics.keys() == {"orders"}
    async with AsyncCluster(controllers=1, brokers=0) as cluster:
        with pytest.raises(TopicError, match="no broker runs"):
            await cluster.create_topic("orders")


def test_a_killed_broker_is_noticed_within_its_short_session() -> None:
    with Cluster(controllers=1, brokers=2) as cluster:
        settings = cluster.node(101).config.texts
        assert settings["broker.session.timeout.ms"] == "2000"
        cluster.create_topic("orders", replication_factor=2)
        before = cluster.leader_of("orders")
        assert before is not None
        cluster.kill(before)
        assert (
            wait_for(
                lambda: after if (after := cluster.leader_of("orders")) != before else None,
                "the other broker leads",
            )
            == {101: 102, 102: 101}[before]
        )


def test_an_override_is_stronger_than_the_short_time_outs() -> None:
    with Cluster(overrides={"broker.session.timeout.ms": 7000}) as cluster:
        assert cluster.node(1).config.texts["broker.session.timeout.ms"] == "7000"


def test_a_controller_with_a_full_disk_ends_and_comes_back() -> None:
    with Cluster(controllers=3, brokers=1) as cluster:
        leader_id = cluster.leader_id
        assert leader_id is not None
        cluster.fill_disk(leader_id)
        # Nothing has to be written for this.
        assert cluster.leader_id == leader_id
        cluster.create_topic("orders")
        successor_id = cluster.wait_for_leader(other_than=leader_id)
        wait_for(lambda: leader_id not in cluster.node_ids, "the one with the full disk has ended")
        with pytest.raises(KeyError, match="does not run"):
            cluster.fill_disk(leader_id)
        cluster.free_disk(leader_id)
        cluster.restart(leader_id)
        assert leader_id in cluster.node_ids
        assert cluster.leader_id == successor_id
        assert read_topics(cluster.bootstrap_servers).keys() == {"orders"}


def test_a_broker_with_a_full_disk_ends_and_comes_back() -> None:
    with Cluster(controllers=1, brokers=2) as cluster:
        cluster.create_topic("orders")
        leader_id = cluster.leader_of("orders")
        assert leader_id is not None
        address = cluster.bootstrap_servers.split(",")[leader_id - 101]
        with RawClient(address) as client:
            assert produce(client, "orders", batch(b"apple")).error_code == ErrorCode.NONE
            cluster.fill_disk(leader_id)
            answer = produce(client, "orders", batch(b"pear"))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        wait_for(lambda: leader_id not in cluster.node_ids, "it has ended")
        cluster.free_disk(leader_id)
        cluster.restart(leader_id)
        wait_for(lambda: cluster.leader_of("orders") == leader_id, "it leads again")
        with RawClient(address) as client:
            assert produce(client, "orders", batch(b"apple")).error_code == ErrorCode.NONE


async def test_a_node_can_be_restarted_while_its_full_disk_ends_it() -> None:
    async with AsyncCluster() as cluster:
        before = cluster.node(1)
        cluster.fill_disk(1)
        await before.failed()
        assert cluster.node(1) is before
        cluster.free_disk(1)
        await cluster.restart(1)
        after = cluster.node(1)
        assert after.is_running
        await cluster.create_topic("orders")
    assert not after.is_running


@pytest.mark.parametrize("calls", [("kill", "restart"), ("restart", "kill"), ("restart",) * 2])
async def test_a_node_is_stopped_by_two_calls_at_the_same_time(calls: tuple[str, str]) -> None:
    async with asyncio.timeout(PATIENCE_S), AsyncCluster() as cluster:
        await asyncio.gather(*(getattr(cluster, call)(1) for call in calls))
        after = cluster.node(1)
        assert after.is_running
        await cluster.create_topic("orders")
    assert not after.is_running


def test_a_cluster_with_full_disks_stops() -> None:
    with Cluster(controllers=1, brokers=2) as cluster:
        cluster.create_topic("orders", 3, replication_factor=2)
        for node_id in cluster.node_ids:
            cluster.fill_disk(node_id)


def test_the_factory_starts_clusters(kvorum_cluster_factory: ClusterFactory) -> None:
    one = kvorum_cluster_factory(controllers=1, brokers=0)
    other = kvorum_cluster_factory(overrides={"num.partitions": 2})
    assert one.cluster_id != other.cluster_id


@pytest.fixture(scope="module")
def seen() -> dict[str, str]:
    """The names of topics so far, with the cluster of each."""
    return {}


@pytest.mark.parametrize("number", range(2))
def test_a_topic_has_a_fresh_name_on_the_cluster_of_the_session(
    kvorum_cluster_session: Cluster, kvorum_topic: str, number: int, seen: dict[str, str]
) -> None:
    assert re.fullmatch(rf"test_a_topic_has_a_.*-{number}-[0-9a-f]{{8}}", kvorum_topic)
    assert kvorum_cluster_session.leader_of(kvorum_topic) == 1
    assert kvorum_topic not in seen
    seen[kvorum_topic] = kvorum_cluster_session.cluster_id
    assert len(set(seen.values())) == 1

"""Clusters of several nodes in one process: nodes go and come back, and are parted."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.topics import create, read_topics
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.node.embedded.node import WrongSizeError
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.error_codes import ErrorCode

QUICK = {
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "100",
    # More than twice as long as a leader holds a fetch that finds nothing new.
    "controller.quorum.fetch.timeout.ms": "1100",
    "controller.quorum.request.timeout.ms": "1100",
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three controllers and a broker."""
    with Cluster(controllers=3, brokers=1, overrides=QUICK) as running:
        yield running


def epoch_of(cluster: Cluster, node_id: int) -> int:
    return cluster.node(node_id).shared_server.raft.epoch


def test_the_names_of_the_contract(cluster: Cluster) -> None:
    assert cluster.node_ids == (1, 2, 3, 101)
    assert cluster.leader_id in {1, 2, 3}
    assert len(cluster.controller_servers.split(",")) == 3
    assert len(cluster.bootstrap_servers.split(",")) == 1
    assert create(cluster.bootstrap_servers, "here") == [ErrorCode.NONE]


def test_another_leads_when_the_leader_is_killed_and_nothing_is_lost(cluster: Cluster) -> None:
    for name in ("one", "two", "three"):
        assert create(cluster.bootstrap_servers, name) == [ErrorCode.NONE]
        leader_id = cluster.leader_id
        assert leader_id is not None
        cluster.kill(leader_id)
        assert cluster.wait_for_leader(other_than=leader_id) != leader_id
        cluster.restart(leader_id)
    wait_for(
        lambda: read_topics(cluster.bootstrap_servers).keys() == {"one", "two", "three"},
        "all topics are there",
        otherwise=lambda: read_topics(cluster.bootstrap_servers),
    )


def test_a_leader_that_is_parted_from_the_others_gives_up_and_follows(cluster: Cluster) -> None:
    leader_id = cluster.leader_id
    assert leader_id is not None
    others = {1, 2, 3} - {leader_id}
    cluster.partition({leader_id}, others)
    successor_id = cluster.wait_for_leader(other_than=leader_id)
    assert create(cluster.bootstrap_servers, "meanwhile") == [ErrorCode.NONE]
    wait_for(lambda: not cluster.node(leader_id).is_active_controller, "the leader gives up")
    cluster.heal()
    wait_for(
        lambda: epoch_of(cluster, leader_id) == epoch_of(cluster, successor_id),
        "it follows its successor",
    )
    assert cluster.leader_id == successor_id


def test_a_follower_that_is_parted_from_the_others_disturbs_no_node(cluster: Cluster) -> None:
    leader_id = cluster.leader_id
    assert leader_id is not None
    follower_id = min({1, 2, 3} - {leader_id})
    epoch = epoch_of(cluster, leader_id)
    cluster.partition({follower_id}, {1, 2, 3, 101} - {follower_id})
    assert create(cluster.bootstrap_servers, "without-it") == [ErrorCode.NONE]
    raft = cluster.node(follower_id).shared_server.raft
    wait_for(lambda: not raft.has_leader, "it gives up waiting for its leader")
    cluster.heal()
    assert create(cluster.bootstrap_servers, "with-it") == [ErrorCode.NONE]
    assert (cluster.leader_id, epoch_of(cluster, leader_id)) == (leader_id, epoch)


def test_a_partition_outlives_a_restart(cluster: Cluster) -> None:
    leader_id = cluster.leader_id
    assert leader_id is not None
    lonely_id = min({1, 2, 3} - {leader_id})
    cluster.partition({lonely_id}, {1, 2, 3} - {lonely_id})
    before = epoch_of(cluster, lonely_id)
    cluster.kill(leader_id)
    cluster.restart(leader_id)
    leader_id = cluster.wait_for_leader()
    assert leader_id != lonely_id
    assert epoch_of(cluster, leader_id) > epoch_of(cluster, lonely_id) == before


@pytest.mark.parametrize("groups", [[{1}, {1, 2}], [{1}, {9}]])
def test_groups_that_cannot_be(cluster: Cluster, groups: list[set[int]]) -> None:
    with pytest.raises(ValueError, match="each group needs nodes of its own"):
        cluster.partition(*groups)


def test_brokers_come_and_go(tmp_path: Path) -> None:
    with Cluster(controllers=1, brokers=2, folder=tmp_path, overrides=QUICK) as cluster:
        first, second = cluster.bootstrap_servers.split(",")
        cluster.kill(101)
        assert cluster.bootstrap_servers == second
        cluster.restart(101)
        assert create(first, "made") == [ErrorCode.NONE]
    with Cluster(controllers=1, brokers=3, folder=tmp_path, overrides=QUICK) as cluster:
        assert len(cluster.bootstrap_servers.split(",")) == 3
        wait_for(
            lambda: read_topics(cluster.bootstrap_servers.split(",")[2]).keys() == {"made"},
            "the third broker knows the topic",
        )


def test_a_size_that_is_not_that_of_the_data(tmp_path: Path) -> None:
    with Cluster(folder=tmp_path):
        pass
    with pytest.raises(WrongSizeError, match="1 controller"):
        Cluster(controllers=3, folder=tmp_path).start()


@pytest.mark.parametrize("count", [5, 7])
def test_bigger_quorums_form_and_lose_their_leader(count: int) -> None:
    with Cluster(controllers=count, brokers=1, overrides=QUICK) as cluster:
        for number in range(count // 2):
            leader_id = cluster.leader_id or cluster.wait_for_leader()
            assert create(cluster.bootstrap_servers, f"topic-{number}") == [ErrorCode.NONE]
            cluster.kill(leader_id)
            cluster.wait_for_leader(other_than=leader_id)
        assert create(cluster.bootstrap_servers, "last") == [ErrorCode.NONE]
        assert len(cluster.node_ids) == 1 + count - count // 2


async def test_in_a_loop_of_ones_own() -> None:
    async with AsyncCluster(controllers=3, brokers=0, overrides=QUICK) as cluster:
        leader_id = await cluster.wait_for_leader()
        await cluster.kill(leader_id)
        async with asyncio.timeout(PATIENCE_S):
            assert await cluster.wait_for_leader(other_than=leader_id) != leader_id
        await cluster.restart(leader_id)
        assert cluster.node_ids == (1, 2, 3)
    await cluster.stop()

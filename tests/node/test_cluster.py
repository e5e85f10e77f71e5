"""Embedded clusters: their ports, starts and ends, leaderships, nodes that go and are parted."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.node.embedded_cluster import FullFile, prepare_node, running_node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.topics import create, read_topics
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.replica_manager import HOSTED_AT_ONCE, ReplicaManager
from kvorum.node.embedded import cluster as embedded_cluster
from kvorum.node.embedded import node as embedded_node
from kvorum.node.embedded.cluster import EmbeddedCluster
from kvorum.node.embedded.listeners import LOOPBACK
from kvorum.node.embedded.node import ClusterSize, WrongSizeError
from kvorum.node.embedded.overrides import OverrideValue
from kvorum.node.errors import NodeStartError
from kvorum.node.serving.socket_server import bind
from kvorum.node.tasks import run
from kvorum.storage.files import OpenFile, RealFileSystem
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.error_codes import ErrorCode

QUICK = {"broker.session.timeout.ms": "300", "broker.heartbeat.interval.ms": "100"}
QUICK_QUORUM = {
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "100",
    # More than twice as long as a leader holds a fetch that finds nothing new.
    "controller.quorum.fetch.timeout.ms": "1100",
    "controller.quorum.request.timeout.ms": "1100",
}


def test_topics_outlive_a_stop_and_a_kill(tmp_path: Path) -> None:
    with Cluster(folder=tmp_path, overrides=QUICK) as cluster:
        assert create(cluster.bootstrap_servers, "one") == [ErrorCode.NONE]
        cluster.restart(1)
        assert create(cluster.bootstrap_servers, "two") == [ErrorCode.NONE]
        address = cluster.bootstrap_servers
        cluster.kill(1)
        cluster.restart(1)
        assert cluster.bootstrap_servers == address
        assert read_topics(address).keys() == {"one", "two"}
        identity = cluster.cluster_id
    with Cluster(folder=str(tmp_path), overrides=QUICK) as cluster:
        assert cluster.cluster_id == identity
        assert read_topics(cluster.bootstrap_servers).keys() == {"one", "two"}


def test_the_fixture_gives_a_cluster(kvorum_cluster: Cluster) -> None:
    assert kvorum_cluster.leader_id == 1
    assert create(kvorum_cluster.bootstrap_servers, "here") == [ErrorCode.NONE]


async def test_a_resigned_controller_leads_again_and_nothing_is_lost() -> None:
    async with AsyncCluster() as cluster:
        await asyncio.to_thread(create, cluster.bootstrap_servers, "before")
        raft = cluster.node(1).shared_server.raft
        epoch = raft.epoch
        raft.resign(epoch)
        codes = await asyncio.to_thread(create, cluster.bootstrap_servers, "after", "before")
        assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
        assert raft.epoch > epoch
        found = await asyncio.to_thread(read_topics, cluster.bootstrap_servers)
        assert found.keys() == {"before", "after"}


async def test_a_controller_that_breaks_starts_from_its_log_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    async with AsyncCluster() as cluster:
        with monkeypatch.context() as broken:
            broken.setattr("kvorum.node.controller.quorum_controller.handle_in_pieces", fail)
            codes = await asyncio.to_thread(create, cluster.controller_servers, "never")
            assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR]
        codes = await asyncio.to_thread(create, cluster.bootstrap_servers, "then")
        assert codes == [ErrorCode.NONE]
        assert (await asyncio.to_thread(read_topics, cluster.bootstrap_servers)).keys() == {"then"}


class FullDisk(RealFileSystem):
    """A disk that from one moment on takes no more bytes."""

    is_full = False

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        opened = super().open(path, create=create, read_only=read_only)
        return FullFile(opened, is_full=lambda: self.is_full)


async def test_a_full_disk_stops_the_node_loudly(tmp_path: Path) -> None:
    disk = FullDisk()
    async with running_node(tmp_path, files=disk) as embedded, asyncio.timeout(PATIENCE_S):
        disk.is_full = True
        failure = await embedded.node.failed()
    assert "No space left on device" in str(failure)
    assert str(tmp_path) in str(failure)


class HeldDisk(RealFileSystem):
    """A disk that makes no directory of the topic `wide` until it is released."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.is_released = threading.Event()

    def make_directory(self, path: Path) -> None:
        if path.name.startswith("wide-"):
            self.is_asked.set()
            self.is_released.wait()
        super().make_directory(path)


async def test_a_broker_that_stops_hosts_no_further_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk()
    stops = asyncio.Event()
    shutdown = ReplicaManager.shutdown

    async def noted(replicas: ReplicaManager, *, broker_epoch: int) -> None:
        stops.set()
        await shutdown(replicas, broker_epoch=broker_epoch)

    monkeypatch.setattr(ReplicaManager, "shutdown", noted)
    embedded = prepare_node(tmp_path, files=disk)
    await embedded.node.start()
    await asyncio.to_thread(create, embedded.bootstrap_servers, "wide", partition_count=50)
    assert await asyncio.to_thread(disk.is_asked.wait, PATIENCE_S)
    stopping = asyncio.create_task(embedded.node.stop())
    await stops.wait()
    disk.is_released.set()
    await stopping
    assert 1 <= _hosted(tmp_path, "wide") <= HOSTED_AT_ONCE < 50


async def test_a_broker_that_has_stopped_follows_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[ReplicaManager] = []
    shutdown = ReplicaManager.shutdown

    async def noted(replicas: ReplicaManager, *, broker_epoch: int) -> None:
        stopped.append(replicas)
        await shutdown(replicas, broker_epoch=broker_epoch)

    monkeypatch.setattr(ReplicaManager, "shutdown", noted)
    async with running_node(tmp_path) as embedded:
        await asyncio.to_thread(create, embedded.bootstrap_servers, "topic")
        image = embedded.node.shared_server.loader.published
    (replicas,) = stopped
    async with asyncio.timeout(PATIENCE_S):
        # Its threads have ended: work for them would never be done.
        assert not await run(replicas.apply_delta(image, MetadataImage()))


async def test_records_wait_for_the_log_of_a_new_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = HeldDisk()
    waits = asyncio.Event()
    wait_until = BrokerMetadataPublisher.wait_until

    async def noted(
        publisher: BrokerMetadataPublisher, are_there: Callable[[], bool], *, timeout_ms: float
    ) -> None:
        waits.set()
        await wait_until(publisher, are_there, timeout_ms=timeout_ms)

    monkeypatch.setattr(BrokerMetadataPublisher, "wait_until", noted)
    async with running_node(tmp_path, files=disk) as embedded:
        address = embedded.bootstrap_servers
        try:
            await asyncio.to_thread(create, address, "wide")
            assert await asyncio.to_thread(disk.is_asked.wait, PATIENCE_S)
            producing = asyncio.create_task(asyncio.to_thread(_produce, address, "wide"))
            waiting = asyncio.create_task(waits.wait())
            await asyncio.wait({producing, waiting}, return_when=asyncio.FIRST_COMPLETED)
            assert not producing.done()
        finally:
            disk.is_released.set()
        assert await producing == ErrorCode.NONE


def _produce(address: str, topic: str) -> int:
    with RawClient(address) as client:
        return produce(client, topic, batch(b"value")).error_code


def _hosted(folder: Path, topic: str) -> int:
    return len(list(folder.rglob(f"{topic}-*")))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=3, brokers=1, overrides=QUICK_QUORUM) as running:
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
        leader_id = cluster.wait_for_leader()
        cluster.kill(leader_id)
        assert cluster.wait_for_leader(other_than=leader_id) != leader_id
        cluster.restart(leader_id)
    wait_for(
        lambda: read_topics(cluster.bootstrap_servers).keys() == {"one", "two", "three"},
        "all topics are there",
        otherwise=lambda: read_topics(cluster.bootstrap_servers),
    )


def test_a_leader_that_is_parted_from_the_others_gives_up_and_follows(cluster: Cluster) -> None:
    leader_id = cluster.wait_for_leader()
    cluster.partition({leader_id}, {1, 2, 3} - {leader_id})
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
    leader_id = cluster.wait_for_leader()
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
    leader_id = cluster.wait_for_leader()
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


NAMED: dict[str, tuple[Callable[[Cluster], object], str]] = {
    "an unknown node": (
        lambda cluster: cluster.kill(42),
        "there is no node 42: the nodes are 1, 2",
    ),
    "no leader": (
        lambda cluster: cluster.kill(cast("int", None)),
        "there is no node None (leader_id is None while no controller leads",
    ),
    "restart": (lambda cluster: cluster.restart(9), "there is no node 9: the nodes are 1, 2, 3, 1"),
    "internals": (lambda cluster: cluster.node(9), "there is no node 9"),
}


@pytest.mark.parametrize(("call", "text"), NAMED.values(), ids=NAMED)
def test_an_unknown_node_is_named_with_the_nodes_there_are(
    cluster: Cluster, call: Callable[[Cluster], object], text: str
) -> None:
    with pytest.raises(KeyError) as caught:
        call(cluster)
    assert str(caught.value).startswith(text)


def test_a_cluster_shows_its_state(cluster: Cluster) -> None:
    size = "Cluster of 3 controllers and 1 broker"
    address = cluster.bootstrap_servers
    assert repr(cluster) == f"<{size} at {address}, leader {cluster.leader_id}>"
    cluster.kill(1)
    cluster.kill(101)
    with pytest.raises(KeyError, match=r"^node 1 does not run: .*; restart\(1\) starts it$"):
        cluster.kill(1)
    assert repr(cluster).startswith(f"<{size} at no address, ")
    assert repr(cluster).endswith(", not running: 1, 101>")
    cluster.stop()
    assert repr(cluster) == f"<{size}, not running>"
    with pytest.raises(RuntimeError, match=r"does not run: start\(\) starts it"):
        _ = cluster.bootstrap_servers
    assert (
        repr(AsyncCluster(brokers=2)) == "<AsyncCluster of 1 controller and 2 brokers, not running>"
    )


def test_a_wait_for_a_leader_ends_and_says_which_controllers_run(cluster: Cluster) -> None:
    cluster.kill(1)
    cluster.kill(2)
    with pytest.raises(TimeoutError) as caught:
        cluster.wait_for_leader(other_than=3, timeout_s=0.2)
    assert str(caught.value) == (
        "no controller other than 3 leads after 0.2 s; running controllers: 3 (of 1, 2, 3; "
        "a majority is 2)"
    )
    cluster.restart(1)
    cluster.partition({1}, {3, 2})
    with pytest.raises(TimeoutError, match=r"controllers: 1, 3 .*; parted: 1 from 2, 3$"):
        cluster.wait_for_leader(other_than=cluster.leader_id, timeout_s=0)
    cluster.heal()
    assert cluster.wait_for_leader() in {1, 3}


async def test_a_time_out_of_the_caller_is_not_one_of_the_wait() -> None:
    async with AsyncCluster() as cluster:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.01):
                await cluster.wait_for_leader(other_than=1)
        assert "leads after" not in str(caught.value)


async def test_a_start_without_a_leader_ends_and_says_which_controllers_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded_cluster, "LEADER_PATIENCE_SECONDS", 0.0)
    cluster = AsyncCluster()
    with pytest.raises(TimeoutError, match=r"^no controller leads after 0 s; .*: 1 \(of 1; "):
        await cluster.start()
    assert repr(cluster) == "<AsyncCluster of 1 controller and 1 broker, not running>"


async def test_a_cluster_is_started_once(cluster: Cluster) -> None:
    with pytest.raises(RuntimeError, match=r"started already: stop\(\) comes before"):
        cluster.start()
    assert create(cluster.bootstrap_servers, "topic") == [ErrorCode.NONE]
    async with AsyncCluster() as other:
        with pytest.raises(RuntimeError, match="started already"):
            await other.start()
        assert other.leader_id == 1


def test_a_group_of_a_partition_is_a_set(cluster: Cluster) -> None:
    with pytest.raises(TypeError, match=r"as in partition\(\{1\}, \{2, 3\}\)"):
        cluster.partition(*cast("list[set[int]]", [1, {2, 3}]))


def test_overrides_are_texts_numbers_and_booleans() -> None:
    overrides: dict[str, OverrideValue] = {
        "num.partitions": 3,
        "auto.create.topics.enable": False,
        "log.cleaner.dedupe": "x",
    }
    with pytest.raises(ValueError, match=r"did you mean 'log\.cleaner\.dedupe\.buf"):
        Cluster(overrides=overrides)
    del overrides["log.cleaner.dedupe"]
    with Cluster(overrides=overrides) as cluster:
        texts = cluster.node(1).config.texts
        assert (texts["num.partitions"], texts["auto.create.topics.enable"]) == ("3", "false")


def test_brokers_come_and_go(tmp_path: Path) -> None:
    with Cluster(controllers=1, brokers=2, folder=tmp_path, overrides=QUICK_QUORUM) as cluster:
        first, second = cluster.bootstrap_servers.split(",")
        cluster.kill(101)
        assert cluster.bootstrap_servers == second
        cluster.restart(101)
        assert create(first, "made") == [ErrorCode.NONE]
    with Cluster(controllers=1, brokers=3, folder=tmp_path, overrides=QUICK_QUORUM) as cluster:
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


def test_a_size_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(TypeError, match="brokers is '2': a whole number is needed"):
        Cluster(brokers=cast("int", "2"))


@pytest.mark.parametrize("count", [5, 7])
def test_bigger_quorums_form_and_lose_their_leader(count: int) -> None:
    with Cluster(controllers=count, brokers=1, overrides=QUICK_QUORUM) as cluster:
        for number in range(count // 2):
            leader_id = cluster.wait_for_leader()
            assert create(cluster.bootstrap_servers, f"topic-{number}") == [ErrorCode.NONE]
            cluster.kill(leader_id)
            cluster.wait_for_leader(other_than=leader_id)
        assert create(cluster.bootstrap_servers, "last") == [ErrorCode.NONE]
        assert len(cluster.node_ids) == 1 + count - count // 2


async def test_in_a_loop_of_ones_own() -> None:
    async with AsyncCluster(controllers=3, brokers=0, overrides=QUICK_QUORUM) as cluster:
        leader_id = await cluster.wait_for_leader()
        await cluster.kill(leader_id)
        async with asyncio.timeout(PATIENCE_S):
            assert await cluster.wait_for_leader(other_than=leader_id) != leader_id
        await cluster.restart(leader_id)
        assert cluster.node_ids == (1, 2, 3)
    await cluster.stop()


def test_a_chosen_port_is_not_one_that_the_system_gives_to_connections(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, size=ClusterSize(controllers=1, brokers=2), broker_port=0)
    try:
        ports = [
            port
            for embedded in cluster.nodes.values()
            for port in (embedded.broker_port, embedded.controller_port)
            if port is not None
        ]
    finally:
        cluster.discard()
    assert len(ports) == 3
    assert set(ports) <= set(embedded_node.LISTENING_PORTS)


def test_a_bound_port_cannot_be_bound_again_before_it_listens() -> None:
    with embedded_node.bind_anywhere("PLAINTEXT") as bound:
        port = bound.getsockname()[1]
        with pytest.raises(NodeStartError, match=f"port {port} is taken"):
            bind("PLAINTEXT", LOOPBACK, port)


def test_where_all_those_are_taken_the_system_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(embedded_node, "LISTENING_PORTS", range(port, port + 1))
        monkeypatch.setattr(embedded_node, "ATTEMPTS", 1)
        with embedded_node.bind_anywhere("PLAINTEXT") as bound:
            assert bound.getsockname()[1] not in (0, port)

"""Embedded clusters: started, stopped, killed, started again; leaderships lost and won."""

import asyncio
import errno
import threading
from pathlib import Path

import pytest
from tests.node.embedded_cluster import prepare_node, running_node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.topics import create, read_topics
from tests.support.waiting import PATIENCE_S

from kvorum.metadata.image import MetadataImage
from kvorum.node.asyncio_bridge import run
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.replica_manager import HOSTED_AT_ONCE, ReplicaManager
from kvorum.storage.files import OpenFile, RealFileSystem
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.error_codes import ErrorCode

QUICK = {"broker.session.timeout.ms": "300", "broker.heartbeat.interval.ms": "100"}


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
    with Cluster(folder=tmp_path, overrides=QUICK) as cluster:
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
        found = await asyncio.to_thread(read_topics, cluster.bootstrap_servers)
        assert found.keys() == {"then"}


class FullDisk(RealFileSystem):
    """A disk that from one moment on takes no more bytes."""

    is_full = False

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        return FullFile(self, super().open(path, create=create, read_only=read_only))


class FullFile:
    """A file on a `FullDisk`."""

    def __init__(self, disk: FullDisk, opened: OpenFile) -> None:
        self._disk = disk
        self._opened = opened
        self.read_at, self.truncate = opened.read_at, opened.truncate
        self.size, self.sync, self.close = opened.size, opened.sync, opened.close
        self.shared_descriptor = opened.shared_descriptor

    def write_at(self, position: int, data: bytes | memoryview) -> None:
        if self._disk.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._opened.write_at(position, data)


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
    next_turn = BrokerMetadataPublisher.next_turn

    async def noted(publisher: BrokerMetadataPublisher) -> None:
        waits.set()
        await next_turn(publisher)

    monkeypatch.setattr(BrokerMetadataPublisher, "next_turn", noted)
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

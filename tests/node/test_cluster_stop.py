"""A cluster of a test stops at once, whatever has been done to it, and so do its nodes."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest
from tests.node.embedded_cluster import FullFile
from tests.support.topics import create, read_topics
from tests.support.waiting import PATIENCE_S, Threads, wait_for

from kvorum.node.broker.broker_lifecycle_manager import BrokerLifecycleManager
from kvorum.node.embedded import cluster as embedded_cluster
from kvorum.node.embedded.cluster import ClusterStoppedError, EmbeddedCluster
from kvorum.node.errors import NodeStartError
from kvorum.node.tasks import awaiting
from kvorum.storage.files import OpenFile, RealFileSystem
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.error_codes import ErrorCode

QUICK = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "100"}
"""A broker that left without leave may register again after one second."""
FAITHFUL = {
    "controller.quorum.fetch.timeout.ms": "3600000",
    "controller.quorum.request.timeout.ms": "3600000",
}
"""Voters that are cut off from their leader do not stand for election."""
FOR_EVER_S = 10 * PATIENCE_S
Fault = Callable[[Cluster], object]


def kill(cluster: Cluster, *node_ids: int) -> None:
    for node_id in node_ids:
        cluster.kill(node_id)


def kill_and_part(cluster: Cluster) -> None:
    cluster.kill(1)
    cluster.partition({2}, {3})


def leader_of(cluster: Cluster) -> int:
    leader_id = cluster.leader_id
    assert leader_id is not None
    return leader_id


UNANSWERED: dict[str, Fault] = {
    "the controllers are killed": lambda cluster: kill(cluster, 1, 2, 3),
    "a majority is killed": lambda cluster: kill(cluster, 1, 2),
    "a minority and the broker are parted": lambda cluster: cluster.partition({1, 101}, {2, 3}),
    "the broker is alone": lambda cluster: cluster.partition({101}, {1, 2, 3}),
    "no majority": lambda cluster: cluster.partition({1}, {2}, {3}),
    "each is alone": lambda cluster: cluster.partition({1}, {2}, {3}, {101}),
    "one is killed, the others parted": kill_and_part,
}
UNDECIDED: dict[str, Fault] = {
    "the leader is killed": lambda cluster: kill(cluster, leader_of(cluster)),
    "the leader is alone": lambda cluster: cluster.partition(
        {leader_of(cluster)}, {1, 2, 3, 101} - {leader_of(cluster)}
    ),
    "the leader and the broker are parted": lambda cluster: cluster.partition(
        {leader_of(cluster), 101}, {1, 2, 3} - {leader_of(cluster)}
    ),
    "the broker is killed": lambda cluster: kill(cluster, 101),
    "all are killed": lambda cluster: kill(cluster, 1, 2, 3, 101),
}


def stops(cluster: Cluster) -> None:
    """Stop it in a thread: a stop that hangs must not hang the test."""
    threads = Threads()
    threads.start(cluster.stop)
    threads.join()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(controllers=3, brokers=1, folder=tmp_path, overrides=QUICK) as running:
        yield running


@pytest.fixture
def _endless_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a stop that waits for other nodes wait for ever."""
    monkeypatch.setattr(embedded_cluster, "END_PATIENCE_SECONDS", FOR_EVER_S)
    monkeypatch.setattr(embedded_cluster, "RESTART_PATIENCE_SECONDS", FOR_EVER_S)


@pytest.mark.usefixtures("_endless_patience")
@pytest.mark.parametrize("fault", UNANSWERED.values(), ids=UNANSWERED)
def test_a_broker_asks_for_leave_only_where_it_is_answered(cluster: Cluster, fault: Fault) -> None:
    fault(cluster)
    stops(cluster)


@pytest.mark.parametrize("fault", UNDECIDED.values(), ids=UNDECIDED)
def test_a_stop_waits_for_an_answer_for_a_moment_only(fault: Fault) -> None:
    with Cluster(controllers=3, brokers=1, overrides=FAITHFUL) as cluster:
        fault(cluster)
        stops(cluster)


def test_a_stop_inside_a_fault_loses_nothing(cluster: Cluster) -> None:
    folder = cluster.folder
    assert create(cluster.bootstrap_servers, "topic") == [ErrorCode.NONE]
    cluster.partition({1}, {2}, {3}, {101})
    stops(cluster)
    with Cluster(controllers=3, brokers=1, folder=folder, overrides=QUICK) as again:
        assert read_topics(again.bootstrap_servers).keys() == {"topic"}


@pytest.mark.usefixtures("_endless_patience")
async def test_it_stops_in_a_loop_of_ones_own() -> None:
    async with asyncio.timeout(PATIENCE_S):
        async with AsyncCluster(controllers=1, brokers=2) as cluster:
            await cluster.kill(1)
        async with AsyncCluster(controllers=3, brokers=1) as cluster:
            cluster.partition({101}, {1, 2, 3})


@pytest.mark.usefixtures("_endless_patience")
def test_a_broker_that_no_controller_answers_is_restarted_without_leave() -> None:
    began_s = monotonic()
    with Cluster(controllers=1, brokers=1, overrides=QUICK) as cluster:
        cluster.restart(1)
    start_ms = 1000 * (monotonic() - began_s)
    # It has to be enough for a start, which takes seconds on a busy machine.
    timeout = {"initial.broker.registration.timeout.ms": str(round(1000 + 3 * start_ms))}
    with Cluster(controllers=3, brokers=1, overrides={**QUICK, **timeout}) as cluster:
        cluster.partition({101}, {1, 2, 3})
        with pytest.raises(NodeStartError, match="could not register"):
            cluster.restart(101)
        cluster.heal()
        cluster.restart(101)


class FullDisks:
    """Files in folders of a name that from one moment on take no more bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full_name: str | None = None
        open_file = RealFileSystem.open

        def opened(
            files: RealFileSystem, path: Path, *, create: bool = False, read_only: bool = False
        ) -> OpenFile:
            found = open_file(files, path, create=create, read_only=read_only)
            return FullFile(found, is_full=lambda: self.full_name in path.parts)

        monkeypatch.setattr(RealFileSystem, "open", opened)


@pytest.mark.usefixtures("_endless_patience")
@pytest.mark.parametrize("full", ["controller-1", "broker-101"])
def test_it_stops_where_a_disk_is_full(monkeypatch: pytest.MonkeyPatch, full: str) -> None:
    disks = FullDisks(monkeypatch)
    cluster = Cluster(controllers=1, brokers=2)
    cluster.start()
    failing = cluster.node(int(full.rpartition("-")[2]))
    disks.full_name = full
    with suppress(OSError, AssertionError):
        create(cluster.controller_servers, "topic")
    wait_for(lambda: failing.has_failed, "the node has noticed that its disk is full")
    stops(cluster)


class HeldStart:
    """Brokers that do not come up, and the moment when the first one is asked to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_begun = threading.Event()

        async def start(*_: object) -> None:
            self.has_begun.set()
            await awaiting(asyncio.Event().wait)

        monkeypatch.setattr(BrokerLifecycleManager, "start", start)


def test_a_stop_during_a_start_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    raised: list[BaseException] = []
    cluster = Cluster(controllers=3, brokers=1, folder=tmp_path)

    def start() -> None:
        with pytest.raises(ClusterStoppedError, match="was stopped") as caught:
            cluster.start()
        raised.append(caught.value)

    with monkeypatch.context() as holding:
        held = HeldStart(holding)
        threads = Threads()
        threads.start(start)
        assert held.has_begun.wait(PATIENCE_S)
        stops(cluster)
        threads.join()
    assert len(raised) == 1
    # All is closed: ports, and the locks of the directories.
    with Cluster(controllers=3, brokers=1, folder=tmp_path) as again:
        assert create(again.bootstrap_servers, "topic") == [ErrorCode.NONE]


async def test_a_stop_during_a_start_ends_it_in_a_loop_of_ones_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = HeldStart(monkeypatch)
    cluster = AsyncCluster(controllers=1, brokers=1)
    starting = asyncio.create_task(cluster.start())
    await asyncio.to_thread(held.has_begun.wait, PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        await cluster.stop()
        with pytest.raises(ClusterStoppedError, match="was stopped"):
            await starting


async def test_a_start_that_is_cancelled_closes_everything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as holding:
        held = HeldStart(holding)
        starting = asyncio.create_task(AsyncCluster(folder=tmp_path).start())
        await asyncio.to_thread(held.has_begun.wait, PATIENCE_S)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    async with AsyncCluster(folder=tmp_path) as again:
        assert again.leader_id == 1


async def test_a_stop_while_a_node_is_restarted_leaves_no_node_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = AsyncCluster(controllers=1, brokers=2, folder=tmp_path)
    await cluster.start()
    with monkeypatch.context() as holding:
        held = HeldStart(holding)
        restarting = asyncio.create_task(cluster.restart(102))
        await asyncio.to_thread(held.has_begun.wait, PATIENCE_S)
        await cluster.stop()
        with pytest.raises(ClusterStoppedError, match="was stopped"):
            await restarting
    async with AsyncCluster(controllers=1, brokers=2, folder=tmp_path) as again:
        assert len(again.bootstrap_servers.split(",")) == 2


async def test_a_node_that_is_killed_in_its_start_does_not_come_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = AsyncCluster(controllers=1, brokers=2, folder=tmp_path, overrides=QUICK)
    async with cluster:
        with monkeypatch.context() as holding:
            held = HeldStart(holding)
            restarting = asyncio.create_task(cluster.restart(102))
            await asyncio.to_thread(held.has_begun.wait, PATIENCE_S)
            await cluster.kill(102)
            with pytest.raises(NodeStartError, match="was stopped while it started"):
                await restarting
        assert 102 not in cluster.node_ids
        await cluster.restart(102)
        assert 102 in cluster.node_ids


def test_a_wait_in_another_thread_ends_with_the_cluster() -> None:
    cluster = Cluster()
    cluster.start()
    ended: list[str] = []

    def wait() -> None:
        try:
            cluster.wait_for_leader(other_than=1)
        except ClusterStoppedError as error:
            ended.append(str(error))

    threads = Threads()
    waiting = EmbeddedCluster.wait_for_leader
    has_begun = threading.Event()

    async def noted(
        embedded: EmbeddedCluster, *, other_than: int | None = None, timeout_s: float = 0
    ) -> int:
        has_begun.set()
        return await waiting(embedded, other_than=other_than, timeout_s=timeout_s)

    with pytest.MonkeyPatch.context() as noting:
        noting.setattr(EmbeddedCluster, "wait_for_leader", noted)
        threads.start(wait)
        assert has_begun.wait(PATIENCE_S)
    stops(cluster)
    threads.join()
    assert ended == ["the cluster was stopped meanwhile"]

"""The requests of a follower to one leader, while the disk of one of its partitions is slow."""

from collections.abc import Coroutine
from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from tests.unit.broker.fetcher.replicas import LAG_MAX_MS, WALL_MS, Replica, Replicas
from tests.unit.node.waiting_leader import WaitingLeader, raise_error
from tests.unit.storage.topic_logs import PARTITION, TOPIC_ID, flush

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.fetcher.replica_fetcher import LEFT_OUT_WAIT_MS
from kvorum.broker.partition import Partition
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManager
from kvorum.node.broker.replica_fetchers import WRITES_WAIT_MS, ReplicaFetcherThread
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.coroutines import Task, Wait
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.topic_partition import TopicPartition

IDLE: Final = TopicPartition(PARTITION.topic, 1)
"""A partition without writers, led by the same broker."""
WAIT_MS: Final = FetcherSettings(2).wait_ms_max


def is_never_throttled(_: TopicPartition) -> bool:
    return False


class Leader(WaitingLeader):
    """The leader as its follower asks it; a request is answered when the test says so."""

    def __init__(self, leader: Replica, runtime: SimulatedRuntime) -> None:
        super().__init__(runtime)
        self._leader = leader

    def answer(self) -> None:
        """Answer the last request: nothing is new in the idle partition."""
        (topic,) = self.asked[-1].topics
        topic.partitions = [one for one in topic.partitions if one.partition == PARTITION.partition]
        self.settle(self._leader.serve(self.asked[-1]))


class World:
    """Broker 2, whose disk is slow, follows broker 1 in two partitions."""

    def __init__(self) -> None:
        replicas = Replicas()
        replicas.lead(1)
        self.one = replicas.all[1]
        self.two = replicas.all[2]
        self._events = Events()
        runtime = SimulatedRuntime(
            self._events,
            NodeClock(self._events),
            Random(1),
            turn=lambda callback: callback(),
        )
        self.leader = Leader(self.one, runtime)
        broker = SimpleNamespace(
            id=2,
            epoch=self.two.broker.epoch,
            runtime=runtime,
            run=self._run_beside,
        )
        self._thread = ReplicaFetcherThread(
            cast("ThisBroker", broker),
            cast("Any", self.leader),
            FetcherSettings(2),
            cast("ReplicationQuotaManager", SimpleNamespace(is_throttled=is_never_throttled)),
            leader_id=1,
            problems={},
        )
        self._thread.add(self.two.partition, replicas.leader_epoch)
        self._thread.add(self._idle_partition(), replicas.leader_epoch)
        self.run()
        self.one.write(b"a")
        self.two.threads.slow_down(self._get_the_next)
        self.one.write(b"b")
        self._get_the_next()

    @property
    def asked(self) -> list[tuple[set[int], int]]:
        """The partitions of each request, and for how long its leader may wait."""
        return [
            ({one.partition for topic in asked.topics for one in topic.partitions}, wait_ms)
            for asked in self.leader.asked
            if (wait_ms := asked.max_wait_ms)
        ]

    def _run_beside(self, coroutine: Coroutine[Wait[Any], Any, None]) -> Task[None]:
        return Task(coroutine, raise_error)

    def run(self, until_ms: float = 0.5) -> None:
        self._events.run_until(until_ms)

    def _get_the_next(self) -> None:
        self.leader.answer()
        self.run()

    def _idle_partition(self) -> Partition:
        manager = self.two.manager
        return Partition(
            IDLE,
            TOPIC_ID,
            manager.get_or_create_log(IDLE, TOPIC_ID, directory_id=None, now_ms=WALL_MS),
            self.two.broker,
            flush_log=flush,
            lag_max_ms=LAG_MAX_MS,
            topic_stats=self.two.topic_stats,
            isr_changes=self.two.isr_changes,
        )


@pytest.fixture
def world() -> World:
    return World()


def test_the_next_request_has_the_partition_whose_disk_needs_a_moment(world: World) -> None:
    asked_before = len(world.asked)
    world.two.threads.release()
    world.run()
    assert world.asked[asked_before:] == [({0, 1}, WAIT_MS)]


def test_other_partitions_do_not_wait_for_a_disk_for_long_nor_does_their_leader(
    world: World,
) -> None:
    asked_before = len(world.asked)
    world.run(WRITES_WAIT_MS + 1)
    assert world.asked[asked_before:] == [({1}, LEFT_OUT_WAIT_MS)]

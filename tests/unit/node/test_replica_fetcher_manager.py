"""The fetchers of a broker while the number of them for each leader changes."""

from random import Random
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from tests.unit.broker.fetcher.replicas import LAG_MAX_MS, WALL_MS, Replicas
from tests.unit.node.waiting_leader import WaitingLeader, raise_error
from tests.unit.storage.topic_logs import PARTITION, TOPIC_ID, flush

from kvorum.broker.fetcher.fetch_requests import FetcherSettings
from kvorum.broker.partition import Partition
from kvorum.broker.quota.rate import MetricConfig
from kvorum.broker.quota.replication_quota_manager import new_replication_quota_managers
from kvorum.broker.topic_log_configs import TopicConfigs
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.replica_fetchers import ReplicaFetcherManager
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.coroutines import Task
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.fetch import FetchResponse

OTHER: Final = TopicPartition(PARTITION.topic, PARTITION.partition + 1)
LEADER_ID = 1
WINDOWS = MetricConfig(11, 1_000)


def ignore(_: object) -> None: ...


class Leader(WaitingLeader):
    """The leader as one fetcher asks it, which is answered by nothing but an error."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        super().__init__(runtime)
        self.is_closed = False

    async def close(self) -> None:
        self.is_closed = True

    @property
    def wanted(self) -> set[int]:
        """The partitions of the last request."""
        return {one.partition for topic in self.asked[-1].topics for one in topic.partitions}

    def refuse(self, code: int) -> None:
        """Answer the last request with an error for each of its partitions."""
        data = [FetchResponse.PartitionData(one, error_code=code) for one in sorted(self.wanted)]
        topic = FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=data)
        self.settle(FetchResponse(responses=[topic]))


class World:
    """Broker 2 follows broker 1 in two partitions."""

    def __init__(self) -> None:
        self._events = Events()
        self._runtime = SimulatedRuntime(
            self._events, NodeClock(self._events), Random(1), turn=lambda callback: callback()
        )
        self._image = MetadataImage()
        self.leaders: dict[int, Leader] = {}
        replicas = Replicas()
        replicas.lead(LEADER_ID)
        two = replicas.all[2]
        broker = ThisBroker(
            id=two.id,
            epoch=two.broker.epoch,
            image=lambda: self._image,
            runtime=self._runtime,
            on_failure=raise_error,
        )
        quotas = new_replication_quota_managers(
            lambda: self._image.configs, two.id, replication=WINDOWS, alter_log_dirs=WINDOWS
        )
        self.fetchers = ReplicaFetcherManager(
            broker, FetcherSettings(two.id), self._endpoint, quotas.follower, fetcher_count=1
        )
        unused = cast("Any", None)
        self._replicas = ReplicaManager(
            broker,
            cast("Any", SimpleNamespace(reconfigure=ignore)),
            TopicConfigs(two.id, {}),
            fetchers=self.fetchers,
            log_dir_moves=unused,
            assignments=unused,
            alter_partition_channel=unused,
            lag_ms_max=int(LAG_MAX_MS),
        )
        log = two.manager.get_or_create_log(OTHER, TOPIC_ID, directory_id=None, now_ms=WALL_MS)
        other = Partition(
            OTHER,
            TOPIC_ID,
            log,
            two.broker,
            flush_log=flush,
            lag_max_ms=LAG_MAX_MS,
            topic_stats=two.topic_stats,
            isr_changes=two.isr_changes,
        )
        for partition in (two.partition, other):
            self.fetchers.add_fetcher_for_partition(partition, LEADER_ID)
        self._run()

    def _endpoint(self, leader_id: int, fetcher_id: int) -> Any:
        assert leader_id == LEADER_ID
        leader = self.leaders[fetcher_id] = Leader(self._runtime)
        return leader

    def have_fetchers(self, count: int) -> None:
        """Publish an image that has so many fetchers for each leader."""
        record = ConfigRecord(ResourceType.BROKER, "", "num.replica.fetchers", str(count))
        before, self._image = self._image, self._image.apply(record, 0, count)
        Task(self._apply(before), raise_error)
        self._run()

    def refuse(self, fetcher_id: int, code: int) -> None:
        self.leaders[fetcher_id].refuse(code)
        self._run()

    async def _apply(self, before: MetadataImage) -> None:
        assert await self._replicas.apply_delta(before, self._image)

    def _run(self) -> None:
        self._events.run_until(0.5)


@pytest.fixture
def world() -> World:
    return World()


def test_a_new_number_of_fetchers_counts_at_once(world: World) -> None:
    (only,) = world.leaders.values()
    assert only.wanted == {0, 1}
    world.have_fetchers(2)
    newer = world.leaders[1]
    assert only.wanted | newer.wanted == {0, 1}
    assert len(newer.wanted) == 1


def test_fetchers_that_are_not_wanted_any_more_end_and_others_take_their_partitions(
    world: World,
) -> None:
    world.have_fetchers(2)
    first, second = world.leaders[0], world.leaders[1]
    world.have_fetchers(1)
    assert second.is_closed
    assert not first.is_closed
    world.refuse(0, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert first.wanted == second.wanted


def test_partitions_that_have_failed_are_not_fetched_again_by_other_fetchers(world: World) -> None:
    world.refuse(0, ErrorCode.FENCED_LEADER_EPOCH)
    world.have_fetchers(2)
    assert world.fetchers.failed_partition_count == 2
    assert len(world.leaders[0].asked) == 1
    assert list(world.leaders) == [0]

"""The moves of replicas between the log directories of a broker, while a disk is slow or fails."""

from random import Random
from typing import Any, cast

from tests.unit.broker.fetcher.replicas import KEY, Replica, Replicas

from kvorum.broker.quota.rate import MetricConfig
from kvorum.broker.quota.replication_quota_manager import new_replication_quota_managers
from kvorum.metadata.configs_image import ConfigsImage
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.replica_alter_log_dirs import Move, ReplicaAlterLogDirsThread
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.storage.topic_log.unified_log import UnifiedLog

HERE, THERE = bytes([1] * 16), bytes([2] * 16)
QUOTA = MetricConfig(11, 1_000)
NO_REPORTS = cast("Any", None)


async def never(_: Move) -> bool:
    raise AssertionError("nothing is replaced")


def copying(events: Events, failures: list[Exception]) -> ReplicaAlterLogDirsThread:
    runtime = SimulatedRuntime(
        events, NodeClock(events), Random(1), turn=lambda callback: callback()
    )
    broker = ThisBroker(
        id=1, epoch=lambda: 1, image=MetadataImage, runtime=runtime, on_failure=failures.append
    )
    quotas = new_replication_quota_managers(
        ConfigsImage, 1, replication=QUOTA, alter_log_dirs=QUOTA
    )
    return ReplicaAlterLogDirsThread(
        broker,
        NO_REPORTS,
        quotas.alter_log_dirs,
        fetch_bytes_max=1_000,
        backoff_ms=10,
        replace=never,
    )


def move_of(moving: Replica, future: UnifiedLog) -> Move:
    return Move(
        partition=moving.partition,
        replica=moving.partition.maybe_create_future_replica(future),
        current_directory_id=HERE,
        next_directory_id=THERE,
    )


def test_a_replica_whose_disk_cannot_be_read_stays_where_it_is_and_the_broker_goes_on() -> None:
    events, failures = Events(), list[Exception]()
    thread = copying(events, failures)
    replicas = Replicas()
    replicas.lead(1)
    moving, future = replicas.all[1], replicas.all[2].partition.log
    moving.write(b"a")
    moving.files.fail("read", 1)
    move = move_of(moving, future)
    thread.add(move)
    run(events, until_ms=5)
    assert failures == []
    assert not thread.is_moving(move)
    assert moving.values == [b"a"]


def test_a_move_that_is_cancelled_while_the_disk_is_slow_copies_nothing() -> None:
    events, failures = Events(), list[Exception]()
    thread = copying(events, failures)
    replicas = Replicas()
    replicas.lead(1)
    moving, future = replicas.all[1], replicas.all[2].partition.log
    moving.write_slowly(b"slow")
    moving.write(b"waits")
    move = move_of(moving, future)
    thread.add(move)
    run(events, until_ms=5)
    assert moving.threads.held_count > 0
    assert future.log_end_offset == 0

    thread.remove(KEY)
    moving.partition.future_replica = None
    moving.threads.release()
    run(events, until_ms=50)
    assert failures == []
    assert future.log_end_offset == 0


def run(events: Events, *, until_ms: float) -> None:
    while (callback := events.take_next(until_ms)) is not None:
        callback()

"""The copy of a replica to another log directory of its broker."""

from pathlib import Path

import pytest
from tests.support.batch_maker import make_batch
from tests.support.controller_under_test import RegisteredBroker, started_cluster
from tests.support.faulty_files import FaultyFiles
from tests.unit.broker.fetcher.replicas import WALL_MS
from tests.unit.storage.topic_logs import (
    PARTITION,
    TOPIC_ID,
    flush,
    managed,
    sent,
    transactional,
    values_in,
)

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.isr_changes import IsrChanges
from kvorum.broker.partition_leader.leader import IsrProposal
from kvorum.metadata.partition import PartitionRegistration
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.topic_log.unified_log import UnifiedLog

HERE, THERE = Path("/here"), Path("/there")
FETCH_BYTES = 200


class Moving:
    """A leader's replica with logs in two directories."""

    def __init__(self) -> None:
        files = FaultyFiles()
        directories = [
            LogDirectory(root, bytes([number]) * 16, files, was_clean=True)
            for number, root in enumerate((HERE, THERE))
        ]
        for root in (HERE, THERE):
            files.make_directory(root)
        self.manager = managed(directories)
        log = self.manager.get_or_create_log(
            PARTITION, TOPIC_ID, directory_id=bytes(16), now_ms=WALL_MS
        )
        self.controller = started_cluster()
        self.partition = Partition(
            PARTITION,
            TOPIC_ID,
            log,
            RegisteredBroker(self.controller, 1),
            flush_log=flush,
            lag_max_ms=30_000,
            topic_stats=BrokerTopicStats(),
            isr_changes=IsrChanges(list[IsrProposal]().append),
        )
        self.lead(0)
        self.manager.prefer(PARTITION, directories[1])
        future = self.manager.create_future_log(PARTITION, TOPIC_ID, now_ms=WALL_MS)
        self.replica = self.partition.maybe_create_future_replica(future)

    @property
    def current(self) -> UnifiedLog:
        return self.partition.log

    @property
    def future(self) -> UnifiedLog:
        return self.replica.log

    def lead(self, epoch: int) -> None:
        registration = PartitionRegistration(
            (1,), (bytes(16),), isr=(1,), leader=1, leader_epoch=epoch, partition_epoch=epoch
        )
        self.partition.make_leader(registration, min_insync_replicas=1, now_ms=0.0)

    def write(self, *values: bytes) -> None:
        for value in values:
            self.partition.append_records_to_leader(
                sent(value), required_acks=1, wall_ms=WALL_MS, now_ms=0.0
            )

    def copy_once(self) -> None:
        epoch = self.partition.leader_epoch
        self.replica.copy(FETCH_BYTES, leader_epoch=epoch, wall_ms=WALL_MS)

    def copy(self) -> int:
        """Copy until the future log has everything; return how many copies that took."""
        count = 0
        while not self.replica.is_caught_up:
            self.copy_once()
            count += 1
            assert count < 50
        return count


def numbers(count: int) -> list[bytes]:
    return [b"%03d" % number for number in range(count)]


@pytest.fixture
def moving() -> Moving:
    return Moving()


def test_everything_is_copied_in_pieces(moving: Moving) -> None:
    moving.write(*numbers(20))
    assert moving.copy() > 4
    assert values_in(moving.future) == numbers(20)
    assert moving.future.high_watermark == 20
    assert moving.future.local_log.epoch_starts == moving.current.local_log.epoch_starts
    moving.write(b"more")
    assert not moving.replica.is_caught_up
    assert moving.copy() == 1


def test_the_copy_starts_where_the_log_does(moving: Moving) -> None:
    moving.write(*numbers(20))
    moving.partition.delete_records(17, now_ms=WALL_MS)
    moving.copy()
    assert moving.future.log_start_offset == 17
    assert values_in(moving.future)[-3:] == numbers(20)[-3:]
    waited: list[int] = []
    moving.partition.watchers.add(lambda: waited.append(moving.partition.low_watermark))
    moving.partition.delete_records(19, now_ms=WALL_MS)
    # The records are not gone before they are gone from both logs.
    assert waited == [17]
    moving.copy_once()
    assert waited == [17, 19]


def test_a_log_that_was_deleted_up_to_its_end_is_copied(moving: Moving) -> None:
    moving.write(*numbers(20))
    moving.copy()
    moving.write(*numbers(5))
    moving.partition.delete_records(25, now_ms=WALL_MS)
    moving.copy()
    assert moving.future.log_start_offset == 25
    assert moving.future.log_end_offset == 25


def test_a_copy_is_truncated_where_the_epochs_part(moving: Moving) -> None:
    moving.write(*numbers(10))
    moving.lead(1)
    moving.write(b"lost", b"lost as well")
    moving.copy()
    # Another leader had not got these; what it had written instead is as long.
    moving.current.truncate_to(10, now_ms=WALL_MS)
    moving.lead(2)
    moving.write(b"kept", b"kept as well")
    assert moving.current.log_end_offset == moving.future.log_end_offset
    assert not moving.replica.is_caught_up
    moving.copy()
    assert values_in(moving.future) == [*numbers(10), b"kept", b"kept as well"]
    assert moving.future.local_log.epoch_starts == moving.current.local_log.epoch_starts


def test_a_copy_is_truncated_where_compaction_has_left_a_gap(moving: Moving) -> None:
    """The epochs agree then: the later one begins where the lost records ended."""
    moving.write(*numbers(10))
    moving.lead(1)
    moving.copy()
    moving.partition.truncate_to(4, now_ms=WALL_MS)
    later = make_batch(10, epoch=1, values=(b"later",))
    moving.current.append_as_follower(later, leader_epoch=1, now_ms=WALL_MS)
    assert not moving.replica.is_caught_up
    moving.copy()
    assert values_in(moving.future) == [*numbers(4), b"later"]


def test_a_copy_is_truncated_with_its_log(moving: Moving) -> None:
    moving.write(*numbers(10))
    moving.copy()
    moving.current.truncate_to(4, now_ms=WALL_MS)
    moving.copy()
    assert values_in(moving.future) == numbers(4)


def test_a_copy_of_an_epoch_that_the_log_does_not_know_begins_again(moving: Moving) -> None:
    moving.write(*numbers(3))
    moving.lead(1)
    moving.write(b"lost")
    moving.copy()
    moving.current.truncate_fully_and_start_at(2, now_ms=WALL_MS)
    moving.copy()
    assert moving.future.log_start_offset == 2
    assert moving.future.log_end_offset == 2
    assert values_in(moving.future) == []


def test_an_epoch_without_a_record_is_taken_over(moving: Moving) -> None:
    moving.write(*numbers(3))
    moving.lead(4)
    moving.copy()
    assert moving.future.local_log.latest_epoch == 0
    before = moving.current.local_log.epoch_starts
    moving.partition.replace_log(moving.future)
    assert moving.partition.log.local_log.epoch_starts == before


def test_open_transactions_are_known_to_the_copy(moving: Moving) -> None:
    for number in range(4):
        moving.partition.append_records_to_leader(
            transactional(b"%d" % number, sequence=number),
            required_acks=1,
            wall_ms=WALL_MS,
            now_ms=0.0,
        )
    moving.copy()
    assert moving.future.last_stable_offset == 0
    assert moving.future.producers.entries.keys() == {7}
    log = moving.manager.replace_current_with_future_log(PARTITION, TOPIC_ID, now_ms=WALL_MS)
    moving.partition.replace_log(log)
    assert (log.high_watermark, log.last_stable_offset) == (4, 0)
    moving.write(b"plain")
    assert moving.current is log
    assert log.log_end_offset == 5

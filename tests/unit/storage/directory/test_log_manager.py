"""The logs of a broker from one start to the next."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.topic_logs import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    abort_marker,
    append,
    log_in,
    managed,
    sent,
    transactional,
    values_in,
)

from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_manager import LogManager
from kvorum.storage.errors import CorruptFileError, DiskError, OffsetOutOfRangeError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.small_files.clean_shutdown import take_clean_shutdown
from kvorum.storage.small_files.offset_checkpoint_file import RECOVERY_POINT_CHECKPOINT
from kvorum.storage.topic_log.log_validator import RecordValidationError
from kvorum.storage.topic_log.timestamp_and_offset import first_record_since
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import BatchOptions, RecordData, build_batch

ROOT = Path("/logs")
PRODUCER = 7


def started(
    files: FaultyFiles,
    *roots: Path,
    topic_id: bytes | None = TOPIC_ID,
    cordoned: Collection[Path] = (),
) -> LogManager:
    """Return the manager of directories as the last use has left them."""
    directories: list[LogDirectory] = []
    for number, root in enumerate(roots or (ROOT,)):
        files.make_directory(root)
        shutdown = take_clean_shutdown(root, files)
        identity = bytes([number]) * 16
        directories.append(LogDirectory(root, identity, files, was_clean=shutdown.was_clean))
    return managed(directories, {PARTITION: topic_id}.get, cordoned=cordoned)


def created(manager: LogManager, partition: TopicPartition = PARTITION) -> UnifiedLog:
    return manager.get_or_create_log(partition, TOPIC_ID, directory_id=None, now_ms=NOW_MS)


def filled(manager: LogManager, count: int = 30) -> UnifiedLog:
    log = created(manager)
    for number in range(count):
        append(log, sent(b"%d" % number, sequence=number, producer=PRODUCER, time_ms=number))
    log.update_high_watermark(log.log_end_offset)
    return log


@pytest.mark.parametrize("is_clean", [True, False])
def test_records_and_producers_are_there_after_a_start(files: FaultyFiles, is_clean: bool) -> None:
    manager = started(files)
    filled(manager)
    if is_clean:
        manager.shutdown(broker_epoch=3)
    else:
        # Bytes that the operating system has are not lost when a process dies.
        manager.abandon()
    log = log_in(started(files))
    assert values_in(log) == [b"%d" % number for number in range(30)]
    assert log.high_watermark == (30 if is_clean else 0)
    again = append(log, sent(b"29", sequence=29, producer=PRODUCER))
    assert (again.first_offset, log.log_end_offset) == (29, 30)
    with pytest.raises(ProducerError) as refused:
        append(log, sent(b"31", sequence=31, producer=PRODUCER))
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, sent(b"30", sequence=30, producer=PRODUCER)).first_offset == 30


def test_a_clean_start_reads_no_segment(files: FaultyFiles) -> None:
    manager = started(files)
    filled(manager)
    manager.shutdown(broker_epoch=3)
    for path, file in files.names.items():
        if path.suffix == ".log":
            file.content[:] = bytes(len(file.content))
    assert started(files).get_log(PARTITION) is not None


def test_a_log_that_fails_as_it_is_closed_leaves_no_other_one_open(files: FaultyFiles) -> None:
    manager = started(files)
    logs = [created(manager, TopicPartition("topic", number)) for number in range(5)]
    for log in logs:
        append(log, sent(b"value"))
    files.fail("sync", 3)
    with pytest.raises(DiskError):
        manager.directories[0].close(thread_count=2)
    assert all(log.local_log.is_closed for log in logs)
    assert len([path for path in files.names if path.name == f"{1:020d}.snapshot"]) == 4


def test_a_log_that_a_disk_made_unusable_is_not_marked_as_clean(files: FaultyFiles) -> None:
    manager = started(files)
    log = filled(manager).local_log
    log.update_files(now_ms=NOW_MS)
    files.fail("sync", 1)
    with pytest.raises(Exception, match="sync"):
        log.flush()
    files.faults.clear()
    manager.shutdown(broker_epoch=3)
    assert not take_clean_shutdown(ROOT, files).was_clean


def test_a_batch_that_was_not_written_may_be_sent_again(files: FaultyFiles) -> None:
    """KAFKA-6683: its producer has sent nothing as long as the batch is not in the log."""
    log = filled(started(files), count=1)
    files.fail("write", 1)
    batch = sent(b"1", sequence=1, producer=PRODUCER)
    with pytest.raises(DiskError):
        append(log, batch)
    files.faults.clear()
    assert (append(log, batch).first_offset, log.log_end_offset) == (1, 2)
    assert values_in(log) == [b"0", b"1"]


def test_records_that_are_not_durable_are_as_many_as_flush_messages_allows() -> None:
    log = created(started(FaultyFiles()))
    log.config = replace(log.config, flush_messages=3)
    durable: list[int] = []
    for _ in range(4):
        append(log, sent(b"led"))
        durable.append(log.local_log.recovery_point)
    assert durable == [0, 0, 3, 3]
    copied = build_batch(
        [RecordData(b"copied", None, 5, ())] * 2,
        BatchOptions(base_offset=4, partition_leader_epoch=0),
    )
    log.append_as_follower(copied, leader_epoch=0, now_ms=NOW_MS)
    assert log.local_log.recovery_point == 6


def test_a_negative_producer_id_means_none(files: FaultyFiles) -> None:
    log = created(started(files))
    for offset in range(2):
        assert append(log, sent(b"again", sequence=3, producer=-2)).first_offset == offset
    assert log.producers.entries == {}
    log.local_log.abandon()
    log = created(started(files))
    assert values_in(log) == [b"again", b"again"]
    assert log.producers.entries == {}


def test_the_directory_of_another_topic_is_set_aside() -> None:
    for topic_id in (None, bytes(15) + b"\x09"):
        files = FaultyFiles()
        manager = started(files)
        filled(manager)
        manager.shutdown(broker_epoch=3)
        assert started(files, topic_id=topic_id).get_log(PARTITION) is None
        (stray,) = [name for name in files.list_directories(ROOT) if name.endswith("-stray")]
        assert stray.startswith("topic-0.")


def test_a_deleted_partition_goes_after_a_delay_and_its_name_can_be_used_again() -> None:
    files = FaultyFiles()
    manager = started(files)
    filled(manager)
    manager.async_delete([PARTITION], now_ms=NOW_MS)
    assert manager.delete_logs(now_ms=NOW_MS + 49) == 0
    assert values_in(created(manager)) == []
    assert manager.delete_logs(now_ms=NOW_MS + 50) == 1
    assert files.list_directories(ROOT) == ["topic-0"]


def test_logs_that_leave_together_store_the_recovery_points_of_the_others_once(
    files: FaultyFiles,
) -> None:
    """The file has the points of all logs: a write for each one that leaves is quadratic."""
    manager = started(files)
    leaving = [TopicPartition("leaving", number) for number in range(5)]
    for partition in (PARTITION, *leaving):
        created(manager, partition)
    files.calls.clear()
    manager.async_delete(leaving, now_ms=NOW_MS)
    stored = [name for operation, name in files.calls if operation == "create"]
    assert stored == [f"{RECOVERY_POINT_CHECKPOINT}.tmp"]
    (directory,) = manager.directories
    assert set(directory.logs) == {PARTITION}


def test_a_log_that_cannot_leave_keeps_none_of_the_others(files: FaultyFiles) -> None:
    manager = started(files)
    leaving = [TopicPartition("leaving", number) for number in range(3)]
    for partition in leaving:
        created(manager, partition)
    files.fail("rename", 1)
    with pytest.raises(DiskError):
        manager.async_delete(leaving, now_ms=NOW_MS)
    assert manager.delete_logs(now_ms=NOW_MS + 50) == 2
    assert files.list_directories(ROOT) == ["leaving-0"]


def test_what_was_to_be_deleted_is_deleted_after_a_start(files: FaultyFiles) -> None:
    manager = started(files)
    filled(manager)
    manager.async_delete([PARTITION], now_ms=NOW_MS)
    manager.abandon()
    second = started(files)
    assert second.get_log(PARTITION) is None
    assert second.delete_logs(now_ms=NOW_MS + 50) == 1
    assert files.list_directories(ROOT) == []


def with_checkpoints(files: FaultyFiles) -> LogManager:
    """Return a manager that has noted how far its log is deleted, durable and committed."""
    manager = started(files)
    log = filled(manager)
    log.local_log.flush()
    log.delete_records(17, now_ms=NOW_MS)
    manager.checkpoint_high_watermarks()
    manager.checkpoint_recovery_points()
    return manager


def test_a_deleted_log_leaves_nothing_to_a_new_one_of_its_name(files: FaultyFiles) -> None:
    """The process may end while it deletes a log, before the checkpoints are stored again."""
    manager = with_checkpoints(files)
    files.rename(ROOT / str(PARTITION), ROOT / f"{PARTITION}.{bytes(16).hex()}-delete")
    manager.abandon()
    log = created(started(files))
    local = log.local_log
    assert (local.log_start_offset, local.log_end_offset, log.high_watermark) == (0, 0, 0)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_deleted_log_leaves_nothing_to_a_new_one_after_a_power_cut(*, is_restarted: bool) -> None:
    """The new log is there, and no checkpoint has been stored since the former one was."""
    files = FaultyFiles()
    manager = with_checkpoints(files)
    manager.async_delete([PARTITION], now_ms=NOW_MS)
    if is_restarted:
        manager.abandon()
        manager = started(files)
    created(manager)
    manager.abandon()
    log = created(started(files.after_power_cut(Random(1))))
    local = log.local_log
    assert (local.log_start_offset, local.log_end_offset, log.high_watermark) == (0, 0, 0)


def test_a_new_log_goes_where_there_are_the_fewest(files: FaultyFiles) -> None:
    manager = started(files, Path("/a"), Path("/b"))
    for number in range(4):
        created(manager, TopicPartition("topic", number))
    assert [len(directory.logs) for directory in manager.directories] == [2, 2]
    named = manager.get_or_create_log(
        TopicPartition("topic", 9), TOPIC_ID, directory_id=bytes([1]) * 16, now_ms=NOW_MS
    )
    assert named in manager.directories[1].logs.values()


def test_a_new_log_goes_to_no_cordoned_directory_while_another_is_there(
    files: FaultyFiles,
) -> None:
    cordoned = {Path("/a")}
    manager = started(files, Path("/a"), Path("/b"), cordoned=cordoned)
    for number in range(2):
        created(manager, TopicPartition("topic", number))
    assert [len(directory.logs) for directory in manager.directories] == [0, 2]
    manager.get_or_create_log(
        TopicPartition("topic", 8), TOPIC_ID, directory_id=bytes([0]) * 16, now_ms=NOW_MS
    )
    assert [len(directory.logs) for directory in manager.directories] == [1, 2]
    cordoned.add(Path("/b"))
    created(manager, TopicPartition("topic", 9))
    assert [len(directory.logs) for directory in manager.directories] == [2, 2]


def test_a_directory_that_is_not_a_partition_is_refused(files: FaultyFiles) -> None:
    files.make_directory(ROOT / "lost+found")
    with pytest.raises(CorruptFileError, match=r"lost\+found"):
        started(files)


def test_deleted_records_stay_deleted(files: FaultyFiles) -> None:
    manager = started(files)
    log = filled(manager)
    log.delete_records(17, now_ms=NOW_MS)
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records(31, now_ms=NOW_MS)
    manager.shutdown(broker_epoch=3)
    again = log_in(started(files))
    assert again.log_start_offset == 17
    ((first, *_), *_) = again.batches_since(3, end_offset=30)
    found = first_record_since(first, 3, start_offset=again.log_start_offset)
    assert found is not None
    assert (found.offset, found.timestamp) == (17, 17)


@pytest.mark.parametrize("deleted_to", [6, 10])
def test_deleted_records_of_a_later_epoch_go_with_a_truncation_to_the_start(
    deleted_to: int, files: FaultyFiles
) -> None:
    """A leader that had other records there goes on in an earlier epoch than theirs."""
    log = created(started(files))
    for number in range(10):
        log.append_as_leader(sent(b"%d" % number), leader_epoch=7, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    log.delete_records(deleted_to, now_ms=NOW_MS)
    log.truncate_behind(deleted_to, now_ms=NOW_MS)
    fetched = make_batch(deleted_to, epoch=6)
    log.append_as_follower(fetched, leader_epoch=6, now_ms=NOW_MS)
    log.local_log.flush()
    again = log_in(started(files))
    assert (again.log_start_offset, again.log_end_offset) == (deleted_to, deleted_to + 1)
    assert again.local_log.latest_epoch == 6


def test_a_damaged_producer_snapshot_is_made_again_from_the_log(files: FaultyFiles) -> None:
    manager = started(files)
    filled(manager)
    manager.shutdown(broker_epoch=3)
    for path, file in files.names.items():
        if path.suffix == ".snapshot":
            file.content[-1] ^= 1
    log = log_in(started(files))
    assert append(log, sent(b"29", sequence=29, producer=PRODUCER)).first_offset == 29


def test_a_batch_is_refused_by_its_size_and_checksum() -> None:
    log = created(started(FaultyFiles()))
    with pytest.raises(RecordValidationError) as large:
        append(log, sent(bytes(600)))
    assert large.value.code is ErrorCode.MESSAGE_TOO_LARGE
    batch = sent(b"right")
    with pytest.raises(RecordValidationError) as corrupt:
        append(log, batch._replace(crc=batch.crc ^ 1))
    assert corrupt.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0


def test_readers_of_committed_records_learn_of_aborted_transactions(files: FaultyFiles) -> None:
    manager = started(files)
    log = created(manager)
    for number in range(4):
        append(log, transactional(b"%d" % number, sequence=number))
    append(log, sent(b"plain"))
    log.update_high_watermark(log.log_end_offset)
    assert (log.high_watermark, log.last_stable_offset) == (5, 0)
    log.append_as_leader(
        abort_marker(), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 6
    manager.shutdown(broker_epoch=3)
    again = log_in(started(files))
    assert again.last_stable_offset == 6
    read = again.read_range(2, 1 << 20, end_offset=6)
    assert read.upper_bound_offset == 6
    (aborted,) = again.aborted_transactions(2, read.upper_bound_offset)
    assert aborted == (PRODUCER, 0, 5, 6)
    assert again.aborted_transactions(6, 6) == []

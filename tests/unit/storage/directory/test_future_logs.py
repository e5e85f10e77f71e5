"""The logs of replicas that move from one log directory to another."""

from itertools import count
from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles, PowerCutError
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
from kvorum.storage.directory.partition_directory import future_partition, has_future_name
from kvorum.storage.errors import CorruptFileError, DiskError, StorageError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.producer_state import ProducerError
from kvorum.storage.log.verification_state import VerificationGuard
from kvorum.storage.small_files.clean_shutdown import take_clean_shutdown
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition

HERE, THERE = Path("/here"), Path("/there")
IDS = {HERE: bytes([1]) * 16, THERE: bytes([2]) * 16}
PRODUCER = 7
COUNT = 30


def started(
    files: FaultyFiles, *, assigned: Path = HERE, topic_id: bytes | None = TOPIC_ID
) -> LogManager:
    directories: list[LogDirectory] = []
    for root, identity in IDS.items():
        files.make_directory(root)
        shutdown = take_clean_shutdown(root, files)
        directories.append(LogDirectory(root, identity, files, was_clean=shutdown.was_clean))
    return managed(directories, {PARTITION: topic_id}.get, lambda _: IDS[assigned])


def filled(manager: LogManager) -> UnifiedLog:
    log = manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=IDS[HERE], now_ms=NOW_MS)
    for number in range(COUNT):
        append(log, sent(b"%d" % number, sequence=number, producer=PRODUCER))
    log.update_high_watermark(log.log_end_offset)
    return log


def moving(manager: LogManager) -> UnifiedLog:
    """Return a future log in the other directory that has everything."""
    log = manager.get_log(PARTITION) or filled(manager)
    manager.prefer(PARTITION, manager.directories[1])
    future = manager.create_future_log(PARTITION, TOPIC_ID, now_ms=NOW_MS)
    copy(log, future)
    return future


def close_while_moving(files: FaultyFiles, *later: bytes) -> None:
    """Leave a future log, and records that the current one has got since."""
    manager = started(files)
    moving(manager)
    for value in later:
        append(manager.directories[0].logs[PARTITION], sent(value))
    manager.shutdown(broker_epoch=3)


def copy(log: UnifiedLog, future: UnifiedLog) -> None:
    source, copied = log.local_log, future.local_log
    while copied.log_end_offset < source.log_end_offset:
        records = source.read(copied.log_end_offset, 1 << 20, end_offset=source.log_end_offset)
        future.append_as_follower(records, leader_epoch=0, now_ms=NOW_MS)
    future.update_high_watermark(log.high_watermark)


def moved(manager: LogManager) -> UnifiedLog:
    return manager.replace_current_with_future_log(PARTITION, TOPIC_ID, now_ms=NOW_MS)


def test_a_future_log_takes_the_place_of_the_current_one(files: FaultyFiles) -> None:
    manager = started(files)
    old = filled(manager)
    written = values_in(old)
    moving(manager)
    (name,) = files.list_directories(THERE)
    assert future_partition(name) == PARTITION
    log = moved(manager)
    assert (manager.get_log(PARTITION), manager.future_log(PARTITION)) == (log, None)
    assert values_in(log) == written
    assert log.high_watermark == COUNT
    assert old.local_log.is_closed
    assert files.list_directories(THERE) == ["topic-0"]
    (deleted,) = files.list_directories(HERE)
    assert deleted.startswith("topic-0.")
    assert deleted.endswith("-delete")
    # The log knows its producers, and goes on.
    assert append(log, sent(b"29", sequence=29, producer=PRODUCER)).first_offset == 29
    with pytest.raises(ProducerError):
        append(log, sent(b"31", sequence=31, producer=PRODUCER))
    assert append(log, sent(b"30", sequence=30, producer=PRODUCER)).first_offset == 30
    assert manager.delete_logs(now_ms=NOW_MS + 50) == 1
    assert files.list_directories(HERE) == []


def test_a_moved_log_knows_its_producers_as_the_former_one_did(files: FaultyFiles) -> None:
    """A producer sends batches again that were not its last; a transaction is about to begin."""
    manager = started(files)
    old = filled(manager)
    append(old, transactional(b"aborted", sequence=COUNT))
    old.append_as_leader(
        abort_marker(), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )
    guard = verification_of_the_next_transaction(old)
    moving(manager)
    log = moved(manager)
    assert append(log, sent(b"27", sequence=27, producer=PRODUCER)).first_offset == 27
    assert verification_of_the_next_transaction(log) is guard
    assert (log.high_watermark, log.last_stable_offset) == (COUNT, COUNT)
    log.update_high_watermark(COUNT + 1)
    # The marker is not replicated yet.
    assert log.last_stable_offset == COUNT


def verification_of_the_next_transaction(log: UnifiedLog) -> VerificationGuard | None:
    return log.producers.maybe_start_transaction_verification(
        PRODUCER, sequence=COUNT + 1, epoch=0, supports_epoch_bump=False, now_ms=NOW_MS
    )


def test_a_move_goes_on_after_a_start(files: FaultyFiles) -> None:
    close_while_moving(files, b"later")
    again = started(files)
    current, future = again.get_log(PARTITION), again.future_log(PARTITION)
    assert current is not None
    assert future is not None
    assert (current.log_end_offset, future.log_end_offset) == (COUNT + 1, COUNT)
    assert future.high_watermark == COUNT
    copy(current, future)
    assert len(values_in(moved(again))) == COUNT + 1


def test_a_start_goes_on_with_a_move_that_the_controller_knows_of(files: FaultyFiles) -> None:
    """Records after the copy are in the current log alone; Kafka's drops that log here."""
    close_while_moving(files, b"later")
    again = started(files, assigned=THERE)
    assert values_in(log_in(again))[-1] == b"later"
    assert again.future_log(PARTITION) is not None


def test_a_future_log_without_a_current_one_takes_its_place(files: FaultyFiles) -> None:
    close_while_moving(files)
    files.remove_directory(HERE / "topic-0")
    elsewhere = started(files)
    assert elsewhere.get_log(PARTITION) is None
    elsewhere.shutdown(broker_epoch=3)
    assert len(values_in(log_in(started(files, assigned=THERE)))) == COUNT
    assert files.list_directories(THERE) == ["topic-0"]


def test_a_cancelled_move_leaves_nothing(files: FaultyFiles) -> None:
    manager = started(files)
    moving(manager)
    manager.checkpoint_high_watermarks()
    manager.async_delete_future(PARTITION, now_ms=NOW_MS)
    assert manager.future_log(PARTITION) is None
    assert manager.delete_logs(now_ms=NOW_MS + 50) == 1
    assert files.list_directories(THERE) == []
    assert len(values_in(moving(manager))) == COUNT


def test_a_deleted_partition_takes_its_future_log_with_it(files: FaultyFiles) -> None:
    manager = started(files)
    moving(manager)
    manager.async_delete([PARTITION], now_ms=NOW_MS)
    assert (manager.get_log(PARTITION), manager.future_log(PARTITION)) == (None, None)
    assert manager.delete_logs(now_ms=NOW_MS + 50) == 2


@pytest.mark.parametrize("longer", [HERE, THERE])
@pytest.mark.parametrize("later_epoch", [HERE, THERE, None])
def test_of_two_logs_that_the_metadata_has_nowhere_the_one_that_ends_later_counts(
    longer: Path, later_epoch: Path | None
) -> None:
    """Both are of one partition if a directory has come back after its replica was made again."""
    files = {root: FaultyFiles() for root in IDS}
    for root, identity in IDS.items():
        files[root].make_directory(root)
        manager = managed([LogDirectory(root, identity, files[root], was_clean=False)])
        log = manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=identity, now_ms=NOW_MS)
        for number in range(9 if root == longer else 5):
            log.append_as_leader(
                sent(b"%d" % number), leader_epoch=int(root == later_epoch), now_ms=NOW_MS
            )
        manager.shutdown(broker_epoch=3)
    directories = [
        LogDirectory(root, identity, files[root], was_clean=True) for root, identity in IDS.items()
    ]
    manager = managed(directories, {PARTITION: TOPIC_ID}.get, lambda _: bytes(16))
    right = later_epoch or longer
    (wrong,) = {HERE, THERE} - {right}
    assert len(values_in(log_in(manager))) == (9 if right == longer else 5)
    assert files[right].list_directories(right) == ["topic-0"]
    (stray,) = files[wrong].list_directories(wrong)
    assert stray.endswith("-stray")


def test_the_future_log_of_another_topic_is_set_aside(files: FaultyFiles) -> None:
    close_while_moving(files)
    assert started(files, topic_id=None).future_log(PARTITION) is None
    (stray,) = files.list_directories(THERE)
    assert stray.endswith("-stray")


def test_a_new_log_goes_to_the_preferred_directory() -> None:
    manager = started(FaultyFiles())
    here, there = manager.directories
    manager.prefer(PARTITION, there)
    log = manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=here.id, now_ms=NOW_MS)
    assert there.logs == {PARTITION: log}


def test_no_future_log_is_made_while_a_directory_is_offline() -> None:
    manager = started(FaultyFiles())
    filled(manager)
    manager.prefer(PARTITION, manager.directories[1])
    manager.has_offline_log_dirs = True
    with pytest.raises(StorageError, match="offline"):
        manager.create_future_log(PARTITION, TOPIC_ID, now_ms=NOW_MS)


def test_deleted_records_stay_deleted_in_the_next_directory(files: FaultyFiles) -> None:
    manager = started(files)
    moving(manager).delete_records(17, now_ms=NOW_MS)
    moved(manager)
    assert log_in(started(files, assigned=THERE)).log_start_offset == 17


def test_two_current_logs_are_one_where_the_metadata_has_the_replica() -> None:
    for assigned in (HERE, THERE):
        files = FaultyFiles()
        close_while_moving(files)
        (name,) = files.list_directories(THERE)
        files.rename(THERE / name, THERE / "topic-0")
        assert started(files, assigned=assigned).get_log(PARTITION) is not None
        assert files.list_directories(assigned) == ["topic-0"]
        (other,) = {HERE, THERE} - {assigned}
        (aside,) = files.list_directories(other)
        assert aside.endswith("-stray")


def test_a_process_that_ends_while_a_log_is_replaced_leaves_the_whole_log() -> None:
    """The next start has every record, whatever call to the disk was the last."""
    for number in count(1):
        files = FaultyFiles()
        manager = started(files)
        written = values_in(filled(manager))
        moving(manager)
        files.calls_until_power_cut = number
        try:
            moved(manager)
        except PowerCutError:
            pass
        else:
            assert number > 10
            return
        files.calls_until_power_cut = None
        again = started(files.after_process_crash(), assigned=THERE)
        found = log_in(again)
        assert values_in(found) == written, number
        future = again.future_log(PARTITION)
        if future is not None:
            copy(found, future)
            assert values_in(moved(again)) == written, number


def test_a_replacement_that_fails_leaves_the_current_log(files: FaultyFiles) -> None:
    manager = started(files)
    log = filled(manager)
    moving(manager)
    files.fail("rename", 1)
    with pytest.raises(DiskError):
        moved(manager)
    assert manager.get_log(PARTITION) is log
    assert len(values_in(log)) == COUNT


def test_a_replaced_log_that_cannot_be_put_aside_is_not_used_again(files: FaultyFiles) -> None:
    manager = started(files)
    old = filled(manager).local_log
    moving(manager)
    files.fail("rename", renames_up_to_the_replaced_log())
    assert moved(manager) is manager.get_log(PARTITION)
    assert manager.directory_of(PARTITION) is manager.directories[1]
    assert old.is_closed
    assert "topic-0" in files.list_directories(HERE)


def renames_up_to_the_replaced_log() -> int:
    """Return which rename is that of the current log's directory; checkpoints are renamed too."""
    files = FaultyFiles()
    manager = started(files)
    moving(manager)
    files.calls.clear()
    moved(manager)
    names = [name for operation, name in files.calls if operation == "rename"]
    return 1 + names.index(str(PARTITION))


def test_a_name_that_would_be_too_long_cannot_move() -> None:
    assert has_future_name(TopicPartition("t" * 213, 0))
    assert not has_future_name(TopicPartition("t" * 214, 0))


def test_two_future_logs_of_a_partition_are_refused(files: FaultyFiles) -> None:
    close_while_moving(files)
    files.make_directory(THERE / f"topic-0.{bytes(16).hex()}-future")
    with pytest.raises(CorruptFileError, match="second"):
        started(files)

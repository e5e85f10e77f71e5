"""Damaged logs and failed directories: what stops, what is set aside, and what goes on."""

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.topic_logs import (
    CONFIG,
    NOW_MS,
    TOPIC_ID,
    append,
    log_in,
    managed,
    sent,
    values_in,
)

from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_directory_files import LogDirectoryFiles
from kvorum.storage.directory.log_manager import LogManager, LogManagerSettings
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import CorruptLogError, DiskError, StorageError
from kvorum.storage.log.log_config import DAY_MS
from kvorum.storage.names import LOG_SUFFIX, offset_name
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition

FIRST, SECOND = Path("/first"), Path("/second")
HERE, THERE = TopicPartition("topic", 0), TopicPartition("topic", 1)
ROOT = Path("/logs")
DAMAGED, SOUND = TopicPartition("topic", 0), TopicPartition("topic", 1)
KEY = r"kvorum\.damaged\.logs\.set\.aside=true"


class TwoDirectories:
    """Partition 0 is in the first directory, partition 1 in the second."""

    def __init__(self) -> None:
        self.files = FaultyFiles()
        self.failures: list[tuple[Path, DiskError]] = []
        channel = LogDirFailureChannel(lambda path, error: self.failures.append((path, error)))
        self.directories: list[LogDirectory] = []
        for number, root in enumerate((FIRST, SECOND)):
            self.files.make_directory(root)
            watched = LogDirectoryFiles(self.files, root, channel, OpenFiles(1))
            self.directories.append(
                LogDirectory(root, bytes([number]) * 16, watched, was_clean=False)
            )
        self.manager: LogManager = managed(self.directories, {HERE: TOPIC_ID, THERE: TOPIC_ID}.get)
        self.here, self.there = self._created(HERE, 0), self._created(THERE, 1)
        for log in (self.here, self.there):
            append(log, sent(b"a"))

    def _created(self, partition: TopicPartition, number: int) -> UnifiedLog:
        return self.manager.get_or_create_log(
            partition, TOPIC_ID, directory_id=bytes([number]) * 16, now_ms=NOW_MS
        )


def read(two: TwoDirectories) -> None:
    values_in(two.there)


def write(two: TwoDirectories) -> None:
    append(two.there, sent(b"b"))


def flush(two: TwoDirectories) -> None:
    two.there.local_log.flush()


def delete(two: TwoDirectories) -> None:
    two.manager.async_delete([THERE], now_ms=NOW_MS)


@pytest.fixture
def two() -> TwoDirectories:
    return TwoDirectories()


@pytest.mark.parametrize(
    ("operation", "work"), [("read", read), ("write", write), ("sync", flush), ("rename", delete)]
)
def test_whatever_the_disk_refuses_is_reported(
    operation: str, work: Callable[[TwoDirectories], None]
) -> None:
    two = TwoDirectories()
    two.files.fail(operation, 1)
    with pytest.raises(StorageError):
        work(two)
    ((path, error),) = two.failures
    assert path == SECOND
    assert error.errno == errno.EIO
    assert error.file is not None
    assert SECOND in error.file.parents


def test_a_checkpoint_that_cannot_be_written_is_reported(two: TwoDirectories) -> None:
    two.files.fail("sync", 1)
    with pytest.raises(StorageError):
        two.manager.checkpoint_recovery_points()
    assert [path for path, _ in two.failures] == [FIRST]


def test_a_second_failure_is_not_news(two: TwoDirectories) -> None:
    for _ in range(2):
        two.files.fail("read", 1)
        with pytest.raises(StorageError):
            read(two)
    assert [path for path, _ in two.failures] == [SECOND]


def test_a_file_that_is_only_looked_for_is_not_a_failure(two: TwoDirectories) -> None:
    with pytest.raises(FileNotFoundError):
        two.directories[0].files.open(FIRST / "nothing", read_only=True)
    assert two.failures == []


def test_the_other_directory_goes_on_without_the_failed_one(two: TwoDirectories) -> None:
    two.manager.handle_log_dir_failure(two.directories[1])
    assert two.manager.get_log(THERE) is None
    assert two.manager.has_offline_log_dirs
    assert two.there.local_log.is_closed
    append(two.here, sent(b"b"))
    assert values_in(two.here) == [b"a", b"b"]
    two.manager.shutdown(broker_epoch=3)
    marks = [path for path in two.files.names if path.name == ".kafka_cleanshutdown"]
    assert [path.parent for path in marks] == [FIRST]


def test_a_directory_that_cannot_be_loaded_is_left_out(two: TwoDirectories) -> None:
    two.manager.abandon()
    two.files.fail("open", 1)
    again = managed(two.directories, {HERE: TOPIC_ID, THERE: TOPIC_ID}.get)
    assert [one.path for one in again.directories] == [SECOND]
    assert again.get_log(HERE) is None
    assert values_in(log_in(again, THERE)) == [b"a"]


def test_a_start_without_any_directory_fails(two: TwoDirectories) -> None:
    two.manager.abandon()
    two.files.fail("open", 1)
    with pytest.raises(DiskError):
        managed(two.directories[:1], {HERE: TOPIC_ID}.get)


def test_no_log_is_made_for_one_that_may_be_in_an_offline_directory(two: TwoDirectories) -> None:
    """KAFKA-16234: it would be empty, and take the place of what is acknowledged."""
    online, failed = (directory.id for directory in two.directories)
    two.manager.handle_log_dir_failure(two.directories[1])
    with pytest.raises(StorageError, match="offline"):
        two.manager.get_or_create_log(THERE, TOPIC_ID, directory_id=failed, now_ms=NOW_MS)
    assert two.manager.get_log(THERE) is None
    made = two.manager.get_or_create_log(
        THERE, TOPIC_ID, directory_id=online, now_ms=NOW_MS
    ).local_log
    assert made.log_end_offset == 0


def manager_of(*, sets_aside: bool) -> LogManager:
    return LogManager(
        LogManagerSettings(sets_damaged_logs_aside=sets_aside),
        config_of=lambda _: CONFIG,
        producer_expiration_ms=lambda: DAY_MS,
        random=Random(1),
    )


def start(manager: LogManager, files: FaultyFiles, *, is_fetchable: bool) -> None:
    files.make_directory(ROOT)
    manager.startup(
        [LogDirectory(ROOT, bytes(16), files, was_clean=False)],
        {DAMAGED: TOPIC_ID, SOUND: TOPIC_ID}.get,
        now_ms=NOW_MS,
        is_fetchable=lambda _: is_fetchable,
    )


@pytest.fixture
def files() -> FaultyFiles:
    """The files of two logs after a crash; the first one has lost a bit that was durable."""
    files = FaultyFiles()
    manager = manager_of(sets_aside=False)
    start(manager, files, is_fetchable=False)
    for partition in (DAMAGED, SOUND):
        log = manager.get_or_create_log(partition, TOPIC_ID, directory_id=None, now_ms=NOW_MS)
        append(log, sent(b"value"))
        log.local_log.flush()
    manager.checkpoint_recovery_points()
    manager.abandon()
    files.names[ROOT / "topic-0" / offset_name(0, LOG_SUFFIX)].content[-1] ^= 1
    return files


def test_a_damaged_log_that_can_be_fetched_is_kept_aside_and_fetched_again(
    files: FaultyFiles,
) -> None:
    damaged = bytes(files.names[ROOT / "topic-0" / offset_name(0, LOG_SUFFIX)].content)
    manager = manager_of(sets_aside=True)
    start(manager, files, is_fetchable=True)
    assert manager.get_log(DAMAGED) is None
    assert values_in(log_in(manager, SOUND)) == [b"value"]
    (aside,) = [name for name in files.list_directories(ROOT) if name.endswith("-stray")]
    assert bytes(files.names[ROOT / aside / offset_name(0, LOG_SUFFIX)].content) == damaged
    log = manager.get_or_create_log(DAMAGED, TOPIC_ID, directory_id=None, now_ms=NOW_MS).local_log
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 0, 0)


def test_the_error_says_that_the_log_can_be_set_aside(files: FaultyFiles) -> None:
    manager = manager_of(sets_aside=False)
    with pytest.raises(CorruptLogError, match=KEY) as caught:
        start(manager, files, is_fetchable=True)
    assert caught.value.file == ROOT / "topic-0" / offset_name(0, LOG_SUFFIX)
    assert caught.value.offset is not None


@pytest.mark.parametrize("sets_aside", [True, False])
def test_a_damaged_log_that_others_may_need_stops_the_start(
    files: FaultyFiles, sets_aside: bool
) -> None:
    with pytest.raises(CorruptLogError) as caught:
        start(manager_of(sets_aside=sets_aside), files, is_fetchable=False)
    assert "set.aside" not in str(caught.value)
    assert "topic-0" in files.list_directories(ROOT)

"""Files of logs that are open in turns: what is written, sent, synced and closed meanwhile."""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import Fault, FaultyFiles
from tests.unit.storage.topic_logs import (
    CONFIG,
    NOW_MS,
    TOPIC_ID,
    abort_marker,
    append,
    managed,
    sent,
    transactional,
    values_in,
)

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_directory_files import LogDirectoryFiles
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import DiskError, TooManyOpenFilesError
from kvorum.storage.files import FileSystem, OpenFile, RealFileSystem
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.batch_header import read_header
from kvorum.storage.log.epochs import LEADER_EPOCH_CHECKPOINT
from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.log.indexes import OffsetIndex
from kvorum.storage.log.segment_list import create_cleaned_segment
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.storage.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SWAP_SUFFIX,
    offset_name,
)
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition

ROOT = Path("/logs")
COUNT_MAX = 3
NO_DESCRIPTOR = pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])


class Turns:
    """Files of one folder, at most three of them open at once."""

    def __init__(self, files: FileSystem, folder: Path) -> None:
        self.failures: list[DiskError] = []
        self.open_files = OpenFiles(COUNT_MAX)
        channel = LogDirFailureChannel(lambda _, error: self.failures.append(error))
        self.files = LogDirectoryFiles(files, folder, channel, self.open_files)
        self._folder = folder

    def write(self, count: int) -> list[OpenFile]:
        """Return that many files, each with its number in it."""
        files = [
            self.files.open(self._folder / str(number), create=True) for number in range(count)
        ]
        for number, file in enumerate(files):
            file.write_at(0, str(number).encode())
        return files


def read(files: list[OpenFile]) -> list[bytes]:
    return [file.read_at(0, 10) for file in files]


def descriptors(folder: Path) -> list[str]:
    links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return [path.name for path in map(Path.readlink, links) if path.parent == folder]


@pytest.fixture
def one() -> OneLog:
    return OneLog()


@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell which files are open")
def test_all_files_are_used_and_few_are_open(tmp_path: Path) -> None:
    turns = Turns(RealFileSystem(), tmp_path)
    files = turns.write(20)
    assert read(files) == [str(number).encode() for number in range(20)]
    assert len(descriptors(tmp_path)) == turns.open_files.count == COUNT_MAX
    for file in files:
        file.close()
    assert descriptors(tmp_path) == []
    assert turns.open_files.count == 0


def test_a_file_that_is_used_again_and_again_is_opened_once(files: FaultyFiles) -> None:
    hot, *others = Turns(files, ROOT).write(5)
    files.calls.clear()
    for file in others * 3:
        hot.read_at(0, 1)
        file.read_at(0, 1)
    opened = [name for operation, name in files.calls if operation == "open"]
    assert opened.count("0") <= 1
    assert opened.count("1") == 3


def test_a_sync_reaches_what_was_written_before_the_file_was_let_go(files: FaultyFiles) -> None:
    for file in Turns(files, ROOT).write(5):
        file.sync()
    assert [memory.synced for memory in files.names.values()] == [b"0", b"1", b"2", b"3", b"4"]


def test_what_is_being_sent_keeps_its_file_and_counts(tmp_path: Path) -> None:
    turns = Turns(RealFileSystem(), tmp_path)
    first, *_ = turns.write(1)
    records = FileRecords(first, 0, 1)
    turns.write(20)
    assert turns.open_files.count == COUNT_MAX
    (tmp_path / "0").unlink()
    assert bytes(records) == b"0"
    del records
    assert turns.open_files.count == COUNT_MAX - 1


def test_more_is_being_sent_than_may_be_open(tmp_path: Path) -> None:
    turns = Turns(RealFileSystem(), tmp_path)
    records: list[FileRecords] = []
    for file in turns.write(20):
        records.append(FileRecords(file, 0, file.size()))
        assert len(turns.write(1)) == 1
    assert [bytes(one) for one in records] == [str(number).encode() for number in range(20)]
    records.clear()
    assert turns.open_files.count <= COUNT_MAX


def test_a_closed_file_is_not_opened_again() -> None:
    """Its name may be another file's by then."""
    turns = Turns(FaultyFiles(), ROOT)
    first, *_ = turns.write(5)
    first.close()
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        first.read_at(0, 1)
    assert turns.failures == []


def test_a_file_that_is_gone_is_a_failure_of_the_disk(files: FaultyFiles) -> None:
    turns = Turns(files, ROOT)
    first, *_ = turns.write(5)
    files.remove(ROOT / "0")
    with pytest.raises(FileNotFoundError):
        first.read_at(0, 1)
    assert [error.errno for error in turns.failures] == [errno.ENOENT]


@NO_DESCRIPTOR
def test_without_a_descriptor_others_are_let_go_for_it(files: FaultyFiles, error: int) -> None:
    turns = Turns(files, ROOT)
    written = turns.write(3)
    files.faults = [Fault("open", 1, error=error), Fault("sync_directory", 1, error=error)]
    turns.files.open(ROOT / "0")
    turns.files.sync_directory(ROOT)
    assert turns.open_files.count < COUNT_MAX
    assert read(written) == [b"0", b"1", b"2"]
    assert turns.failures == []


class OneLog:
    """The log of a partition, whose directory lets go of every file for the next one."""

    def __init__(self) -> None:
        self.files = FaultyFiles()
        self.files.make_directory(ROOT)
        self.failures: list[DiskError] = []
        channel = LogDirFailureChannel(lambda _, error: self.failures.append(error))
        watched = LogDirectoryFiles(self.files, ROOT, channel, OpenFiles(1))
        self.directory = LogDirectory(ROOT, bytes(16), watched, was_clean=False)
        self.manager = managed([self.directory])

    def log(self, number: int = 0) -> UnifiedLog:
        return self.manager.get_or_create_log(
            TopicPartition("topic", number), TOPIC_ID, directory_id=None, now_ms=NOW_MS
        )

    @contextmanager
    def without_descriptors(self, error: int = errno.EMFILE) -> Generator[None]:
        """Refuse every descriptor meanwhile, also when another file was let go for it."""
        self.files.faults = [Fault("open", 1, error=error) for _ in range(100)]
        yield
        self.files.faults = []


@NO_DESCRIPTOR
def test_a_log_that_gets_no_descriptor_is_refused_and_made_later(one: OneLog, error: int) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    problem = f"limit of open files.*{limit}"
    with one.without_descriptors(error), pytest.raises(TooManyOpenFilesError, match=problem):
        one.log()
    assert one.failures == []
    append(one.log(), sent(b"a"))
    assert values_in(one.log()) == [b"a"]


def test_an_append_that_gets_no_descriptor_can_be_repeated(one: OneLog) -> None:
    log, other = one.log(0), one.log(1)
    append(other, sent(b"b"))
    with one.without_descriptors(), pytest.raises(TooManyOpenFilesError):
        append(log, sent(b"a"))
    append(log, sent(b"a"))
    assert values_in(log) == [b"a"]
    assert one.failures == []


def abort(log: UnifiedLog) -> None:
    log.append_as_leader(
        abort_marker(), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )


def test_an_abort_whose_index_gets_no_descriptor_can_be_repeated(one: OneLog) -> None:
    log = one.log()
    append(log, transactional(b"a", sequence=0))
    with one.without_descriptors(), pytest.raises(TooManyOpenFilesError):
        abort(log)
    abort(log)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset == 2
    assert log.aborted_transactions(0, 2) == [AbortedTransaction(7, 0, 1, 2)]
    assert one.failures == []


def test_a_flush_that_gets_no_descriptor_can_be_repeated(one: OneLog) -> None:
    log, other = one.log(0), one.log(1)
    log.update_config(replace(CONFIG, segments=replace(CONFIG.segments, is_flushed_on_roll=False)))
    for value in (b"a" * 400, b"b" * 400):
        append(log, sent(value))
    append(other, sent(b"c"))
    with one.without_descriptors(), pytest.raises(TooManyOpenFilesError):
        log.local_log.flush()
    log.local_log.flush()
    names = [path for path in one.files.durable if path.parent == ROOT / "topic-0"]
    logs = [path for path in names if path.suffix == LOG_SUFFIX]
    assert [one.files.names[path].synced for path in logs] == [
        bytes(one.files.names[path].content) for path in logs
    ]
    assert len(logs) == 2
    assert values_in(log) == [b"a" * 400, b"b" * 400]


def test_a_segment_that_gets_no_descriptor_begins_later(one: OneLog) -> None:
    log = one.log()
    append(log, sent(b"a" * 400))
    with one.without_descriptors(), pytest.raises(TooManyOpenFilesError):
        append(log, sent(b"b" * 400))
    append(log, sent(b"b" * 400))
    assert log.log_end_offset == 2
    assert values_in(log) == [b"a" * 400, b"b" * 400]


def test_an_epoch_whose_file_gets_no_descriptor_is_stored_later(one: OneLog) -> None:
    log = one.log()
    log.local_log.assign_epoch(3)
    one.files.faults = [Fault("create", number, error=errno.EMFILE) for number in (1, 1)]
    with pytest.raises(TooManyOpenFilesError):
        log.local_log.update_files(now_ms=NOW_MS)
    log.local_log.update_files(now_ms=NOW_MS)
    stored = one.files.names[ROOT / "topic-0" / LEADER_EPOCH_CHECKPOINT]
    assert stored.content == b"0\n1\n3 0\n"
    log.append_as_leader(sent(b"a"), leader_epoch=3, now_ms=NOW_MS)
    assert values_in(log) == [b"a"]


def test_a_last_segment_that_is_too_old_goes_once_the_next_one_gets_a_descriptor(
    one: OneLog,
) -> None:
    log = one.log()
    append(log, sent(b"a"))
    log.update_high_watermark(1)
    log.update_config(replace(CONFIG, cleanup=CleanupConfig(retention_ms=0)))
    with one.without_descriptors(), pytest.raises(TooManyOpenFilesError):
        log.delete_old_segments(now_ms=NOW_MS)
    assert log.delete_old_segments(now_ms=NOW_MS) == 1
    assert log.log_start_offset == 1
    append(log, sent(b"b"))
    assert values_in(log) == [b"b"]


def test_index_entries_that_get_no_descriptor_are_written_with_later_ones(one: OneLog) -> None:
    log = one.log()
    append(log, sent(b"a" * 150))
    one.files.faults = [Fault("open", number, error=errno.EMFILE) for number in (1, 1)]
    append(log, sent(b"b"))
    index = one.files.names[ROOT / "topic-0" / offset_name(0, OFFSET_INDEX_SUFFIX)]
    assert index.content == b""
    append(log, sent(b"c" * 150))
    append(log, sent(b"d"))
    assert len(index.content) == 2 * OffsetIndex.entry.size
    assert values_in(log) == [b"a" * 150, b"b", b"c" * 150, b"d"]


def test_a_start_without_descriptors_leaves_the_directory_online(one: OneLog) -> None:
    one.log()
    one.manager.abandon()
    hosted = {TopicPartition("topic", 0): TOPIC_ID}
    with one.without_descriptors(), pytest.raises(TooManyOpenFilesError):
        one.manager.startup([one.directory], hosted.get, now_ms=NOW_MS)
    assert one.manager.directories == (one.directory,)
    assert one.failures == []


def test_a_log_whose_files_are_open_one_at_a_time_holds_what_it_was_given(one: OneLog) -> None:
    log, values = one.log(), [str(number).encode() * 50 for number in range(30)]
    for value in values:
        append(log, sent(value))
    log.local_log.flush()
    assert values_in(log) == values
    logs = [file for path, file in one.files.names.items() if path.suffix == LOG_SUFFIX]
    assert len(logs) > COUNT_MAX
    assert [file.synced for file in logs] == [bytes(file.content) for file in logs]


def test_a_segment_that_was_renamed_is_opened_under_its_new_name(one: OneLog) -> None:
    one.log()
    data = make_batch(0)
    segment = create_cleaned_segment(
        ROOT / "topic-0", 0, files=one.directory.files, config=CONFIG.segments
    )
    segment.append(memoryview(data), [read_header(data)])
    segment.store_indexes()
    segment.change_suffix(SWAP_SUFFIX)
    append(one.log(1), sent(b"a"))
    assert segment.read(0, max_bytes=1, end_offset=1) == data
    segment.store_indexes()
    names = {path.name for path in one.files.names}
    assert offset_name(0, OFFSET_INDEX_SUFFIX) + SWAP_SUFFIX in names
    assert not any(name.endswith(CLEANED_SUFFIX) for name in names)

"""The metadata log: appended to, read, rolled, truncated, and flushed in a thread of its own."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.batch_maker import make_batch, make_batches
from tests.support.faulty_files import FaultyFiles, FaultyOpenFile
from tests.support.waiting import PATIENCE_S
from tests.unit.storage.local_logs import content
from tests.unit.storage.metadata_logs import add_snapshot, open_in

from kvorum.storage.errors import (
    InvalidAppendError,
    InvalidTruncationError,
    OffsetOutOfRangeError,
    PoisonedError,
)
from kvorum.storage.files import OpenFile, RealFileSystem
from kvorum.storage.log.batch_header import split_batches
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import EpochStart, ValidityKind

SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)
HERE = Path("/log")


def open_log(directory: Path, config: LogConfig = SMALL) -> MetadataLog:
    return open_in(directory, config)


def log_of(batches: list[bytes], directory: Path, config: LogConfig = SMALL) -> MetadataLog:
    log = open_log(directory, config)
    for batch in batches:
        log.local_log.append(batch)
    return log


def filled(directory: Path, count: int = 40) -> MetadataLog:
    return log_of(make_batches(0, count), directory)


def test_an_empty_log_starts_and_ends_at_zero(tmp_path: Path) -> None:
    log = open_log(tmp_path / "log")
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert log.last_epoch == 0
    assert bytes(log.local_log.read(0, 100)) == b""


def test_what_was_appended_is_read_across_segments(tmp_path: Path) -> None:
    assert content(filled(tmp_path).local_log) == make_batches(0, 40)
    assert len(list(tmp_path.glob("*.log"))) > 3


@pytest.mark.parametrize("offset", range(40))
def test_a_read_begins_with_the_batch_that_holds_the_offset(tmp_path: Path, offset: int) -> None:
    headers = [header for header, _ in split_batches(filled(tmp_path).local_log.read(offset, 1))]
    assert [header.base_offset for header in headers] == [offset]


def test_a_read_within_a_batch_returns_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path).local_log
    batch = make_batch(0, values=(b"a", b"b", b"c"))
    log.append(batch + make_batch(3))
    assert bytes(log.read(2, 1)) == batch


def test_a_read_never_returns_more_than_asked_except_one_batch(tmp_path: Path) -> None:
    log = filled(tmp_path).local_log
    size = len(make_batches(0, 1)[0])
    assert len(log.read(0, 3 * size)) == 3 * size
    assert len(log.read(0, 3 * size - 1)) == 2 * size
    assert len(log.read(0, 0)) == size


def test_a_read_stops_below_the_end_offset_given(tmp_path: Path) -> None:
    log = open_log(tmp_path).local_log
    first, second = make_batch(0, values=(b"a", b"b")), make_batch(2, values=(b"c", b"d"))
    log.append(first + second)
    assert bytes(log.read(0, 10_000, end_offset=4)) == first + second
    assert bytes(log.read(0, 10_000, end_offset=3)) == first
    assert bytes(log.read(0, 10_000, end_offset=1)) == b""
    assert bytes(log.read(2, 10_000, end_offset=2)) == b""


@pytest.mark.parametrize("offset", [-1, 41])
def test_a_read_outside_is_refused(tmp_path: Path, offset: int) -> None:
    with pytest.raises(OffsetOutOfRangeError):
        filled(tmp_path).local_log.read(offset, 100)


@pytest.mark.parametrize(
    "batch",
    [
        make_batch(41),
        make_batch(39),
        make_batch(40, epoch=0),
        b"",
        make_batch(40)[:-1],
        make_batch(40)[:30],
        make_batch(40) + make_batch(42),
        make_batch(40)[:-1] + b"?",
    ],
    ids=["gap", "overlap", "old epoch", "empty", "cut", "header cut", "gap later", "checksum"],
)
def test_what_does_not_continue_the_log_is_refused_whole(tmp_path: Path, batch: bytes) -> None:
    log = filled(tmp_path)
    with pytest.raises(InvalidAppendError):
        log.local_log.append(batch)
    assert log.log_end_offset == 40
    assert content(log.local_log) == make_batches(0, 40)


def test_a_batch_bigger_than_a_segment_gets_one_of_its_own(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batches = [make_batch(0), make_batch(1, values=(b"x" * 2_000,)), make_batch(2)]
    log.local_log.append(b"".join(batches))
    assert content(log.local_log) == batches
    assert [path.name[18:20] for path in sorted(tmp_path.glob("*.log"))] == ["00", "01", "02"]


def test_a_segment_rolls_when_batches_lie_far_apart(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=500)).local_log
    log.append(make_batch(0, timestamp=1_000))
    log.append(make_batch(1, timestamp=1_500))
    log.append(make_batch(2, timestamp=1_501))
    assert [path.name[18:20] for path in sorted(tmp_path.glob("*.log"))] == ["00", "02"]


def test_a_segment_rolls_when_its_index_is_full(tmp_path: Path) -> None:
    config = LogConfig(index_interval_bytes=1, index_size_bytes_max=48)
    log = log_of(make_batches(0, 9), tmp_path, config)
    assert len(list(tmp_path.glob("*.log"))) > 1
    assert content(log.local_log) == make_batches(0, 9)


def test_rolling_leaves_the_files_that_kafka_leaves(tmp_path: Path) -> None:
    filled(tmp_path, 20).local_log.close()
    bases = sorted(path.stem for path in tmp_path.glob("*.log"))
    assert sorted(path.stem for path in tmp_path.glob("*.index")) == bases
    assert sorted(path.stem for path in tmp_path.glob("*.timeindex")) == bases
    assert sorted(path.stem for path in tmp_path.glob("*.snapshot")) == [*bases[1:], f"{20:020d}"]


def test_epochs_are_kept_in_the_checkpoint_file(tmp_path: Path) -> None:
    log = log_of(make_batches(0, 3, epoch=2) + make_batches(3, 2, epoch=5), tmp_path)
    log.local_log.flush()
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n2 0\n5 3\n"
    assert log.last_epoch == 5


def test_an_epoch_may_begin_before_its_first_record(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    log.local_log.assign_epoch(7)
    assert log.last_epoch == 7
    log.local_log.append(make_batch(3, epoch=7))
    log.local_log.flush()
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n7 3\n"


def test_truncation_at_the_end_takes_back_an_epoch_without_records(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    log.local_log.assign_epoch(7)
    assert log.local_log.truncate_to(3, now_ms=0) == 3
    assert log.last_epoch == 1
    log.local_log.flush()
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"


def test_indexes_that_outlived_their_segment_do_no_harm(tmp_path: Path) -> None:
    log = filled(tmp_path, 3).local_log
    (tmp_path / f"{3:020d}.index").write_bytes(b"rubbish" * 100)
    log.truncate_fully_and_start_at(3, now_ms=0)
    assert (tmp_path / f"{3:020d}.index").read_bytes() == b""
    log.truncate_fully_and_start_at(0, now_ms=0)
    log.close()
    (tmp_path / f"{7:020d}.timeindex").write_bytes(b"rubbish")
    assert f"{7:020d}.timeindex" in open_log(tmp_path).recovery.removed_files
    assert not (tmp_path / f"{7:020d}.timeindex").exists()


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 0)), (1, (3, 1)), (2, (3, 1)), (3, (5, 3)), (4, (5, 3)), (5, (9, 5)), (6, (9, 5))],
)
def test_end_offset_for_epoch(tmp_path: Path, epoch: int, expected: tuple[int, int]) -> None:
    batches = make_batches(0, 3) + make_batches(3, 2, epoch=3) + make_batches(5, 4, epoch=5)
    assert log_of(batches, tmp_path).end_offset_for_epoch(epoch) == OffsetAndEpoch(*expected)


def test_validation_of_a_fetch_position(tmp_path: Path) -> None:
    log = log_of(make_batches(0, 3) + make_batches(3, 4, epoch=3), tmp_path)
    valid, diverging = ValidityKind.VALID, ValidityKind.DIVERGING
    for position, kind, answer in (
        ((0, 9), valid, (0, 0)),
        ((2, 1), valid, (2, 1)),
        ((4, 1), diverging, (3, 1)),
        ((5, 2), diverging, (3, 1)),
        ((7, 3), valid, (7, 3)),
        ((8, 3), diverging, (7, 3)),
        ((5, 4), diverging, (7, 3)),
    ):
        found = log.validate_offset_and_epoch(OffsetAndEpoch(*position))
        assert found == (kind, OffsetAndEpoch(*answer))


@pytest.mark.parametrize("offset", range(41))
def test_truncation_removes_what_is_at_and_after_the_offset(tmp_path: Path, offset: int) -> None:
    log = filled(tmp_path)
    assert log.local_log.truncate_to(offset, now_ms=0) == offset
    assert log.log_end_offset == offset
    assert content(log.local_log) == make_batches(0, offset)
    for batch in make_batches(offset, 15, epoch=2):
        log.local_log.append(batch)
    expected = make_batches(0, offset) + make_batches(offset, 15, epoch=2)
    assert content(log.local_log) == expected
    log.local_log.close()
    again = open_log(tmp_path)
    assert content(again.local_log) == expected
    assert again.recovery.torn_tail is None


def test_truncation_within_a_batch_removes_the_whole_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = make_batch(0, values=(b"a", b"b"))
    log.local_log.append(first + make_batch(2, values=(b"c", b"d", b"e"), epoch=2))
    log.local_log.flush()
    assert log.local_log.truncate_to(4, now_ms=0) == 2
    assert (log.log_end_offset, log.local_log.recovery_point, log.last_epoch) == (2, 2, 1)
    again = open_log(tmp_path)
    assert (again.log_end_offset, again.recovery.torn_tail) == (2, None)


def test_truncation_at_the_end_changes_nothing_and_below_the_start_is_refused(
    tmp_path: Path,
) -> None:
    log = filled(tmp_path, 10).local_log
    assert log.truncate_to(10, now_ms=0) == 10
    assert log.truncate_to(50, now_ms=0) == 10
    log.truncate_fully_and_start_at(20, now_ms=0)
    log.append(make_batch(20))
    with pytest.raises(InvalidTruncationError):
        log.truncate_to(19, now_ms=0)


def test_truncated_files_are_marked_and_go_after_the_delay(tmp_path: Path) -> None:
    log = filled(tmp_path).local_log
    log.truncate_to(0, now_ms=1_000)
    marked = list(tmp_path.glob("*.deleted"))
    assert marked
    assert log.update_files(now_ms=60_999) == 0
    assert log.update_files(now_ms=61_000) == len(marked)
    assert list(tmp_path.glob("*.deleted")) == []


def test_full_truncation_goes_on_at_the_end_of_the_snapshot(tmp_path: Path) -> None:
    log = filled(tmp_path)
    add_snapshot(log.snapshots, OffsetAndEpoch(100, 3))
    assert log.truncate_to_latest_snapshot(now_ms=0)
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert log.last_epoch == 3
    assert [path.name for path in tmp_path.glob("*.log")] == [f"{100:020d}.log"]
    log.local_log.append(make_batch(100, epoch=4))
    log.local_log.flush()
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n1\n4 100\n"
    log.local_log.close()
    again = open_log(tmp_path)
    assert (again.log_start_offset, again.log_end_offset) == (100, 101)
    assert again.last_epoch == 4


def test_full_truncation_is_made_up_for_after_a_crash(tmp_path: Path) -> None:
    add_snapshot(filled(tmp_path).snapshots, OffsetAndEpoch(100, 1))
    again = open_log(tmp_path)
    assert (again.log_start_offset, again.log_end_offset) == (100, 100)
    assert again.last_epoch == 1
    assert not again.truncate_to_latest_snapshot(now_ms=0)


def test_a_flush_moves_the_durable_offset(tmp_path: Path) -> None:
    log = filled(tmp_path, 5).local_log
    assert log.recovery_point == 0
    assert log.flush() == 5
    assert log.recovery_point == 5
    log.truncate_to(2, now_ms=0)
    assert log.recovery_point == 2


def test_a_closed_log_can_be_opened_again_and_not_used_any_more(tmp_path: Path) -> None:
    log = filled(tmp_path).local_log
    log.close()
    log.close()
    with pytest.raises(PoisonedError):
        log.append(make_batch(40))
    again = open_log(tmp_path)
    assert content(again.local_log) == make_batches(0, 40)
    assert again.recovery.lines() == []
    assert again.local_log.recovery_point == 40


def test_a_log_that_goes_on_and_is_closed_again_needs_no_repair(tmp_path: Path) -> None:
    for end_offset in range(1, 6):
        log = open_log(tmp_path)
        assert log.recovery.lines() == []
        log.local_log.append(make_batch(end_offset - 1, timestamp=1_000 + end_offset))
        log.local_log.close()


def test_batch_boundaries(tmp_path: Path) -> None:
    log = open_log(tmp_path).local_log
    log.append(make_batch(0, values=(b"a", b"b")) + make_batch(2, values=(b"c", b"d")))
    assert [offset for offset in range(-1, 7) if log.is_batch_boundary(offset)] == [0, 2, 4]


def test_epoch_entries_of_a_reopened_log_begin_at_its_start(tmp_path: Path) -> None:
    log = filled(tmp_path).local_log
    log.append(make_batch(40, epoch=2))
    log.close()
    (tmp_path / "leader-epoch-checkpoint").unlink()
    assert open_log(tmp_path).recovery.rewrote_epochs
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n1 0\n2 40\n"
    assert EpochStart(2, 40) == EpochStart(epoch=2, start_offset=40)


@dataclass(slots=True)
class SlowSyncFile(FaultyOpenFile):
    """A file whose sync waits until the test lets it go on."""

    started: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    is_slow: bool = False

    def sync(self) -> None:
        content = bytes(self.file.content)
        if self.is_slow:
            self.started.set()
            assert self.go_on.wait(timeout=PATIENCE_S)
        self.file.synced = content


@dataclass(slots=True)
class SlowFiles(FaultyFiles):
    """Files of which the first segment syncs slowly."""

    slow: SlowSyncFile | None = None

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        opened = FaultyFiles.open(self, path, create=create, read_only=read_only)
        if path.name != f"{0:020d}.log":
            return opened
        self.slow = SlowSyncFile(path, self.names[path], self)
        return self.slow


def test_appends_and_reads_go_on_during_a_flush_and_do_not_count_as_flushed() -> None:
    files = SlowFiles()
    log = MetadataLog.open(HERE, files=files, now_ms=0).local_log
    slow = files.slow
    assert slow is not None
    log.append(make_batch(0))
    slow.is_slow = True
    results: list[int] = []
    flusher = threading.Thread(target=lambda: results.append(log.flush()))
    flusher.start()
    assert slow.started.wait(timeout=PATIENCE_S)
    log.append(make_batch(1))
    assert bytes(log.read(0, 10_000)) == make_batch(0) + make_batch(1)
    assert log.recovery_point == 0
    slow.go_on.set()
    flusher.join(timeout=PATIENCE_S)
    assert results == [1]
    assert (log.recovery_point, log.log_end_offset) == (1, 2)


def test_a_truncation_waits_for_a_running_flush() -> None:
    files = SlowFiles()
    log = MetadataLog.open(HERE, files=files, now_ms=0).local_log
    slow = files.slow
    assert slow is not None
    for batch in make_batches(0, 5):
        log.append(batch)
    slow.is_slow = True
    flusher = threading.Thread(target=log.flush)
    flusher.start()
    assert slow.started.wait(timeout=PATIENCE_S)
    truncation = threading.Thread(target=lambda: log.truncate_to(2, now_ms=0))
    truncation.start()
    truncation.join(timeout=0.05)
    assert truncation.is_alive()
    slow.is_slow = False
    slow.go_on.set()
    flusher.join(timeout=PATIENCE_S)
    truncation.join(timeout=PATIENCE_S)
    assert (log.recovery_point, log.log_end_offset) == (2, 2)


def test_many_flushes_beside_many_appends(tmp_path: Path) -> None:
    log = MetadataLog.open(
        tmp_path, files=RealFileSystem(), config=LogConfig(segment_bytes=3_000), now_ms=0
    ).local_log
    is_done = threading.Event()
    flushed: list[int] = []

    def keep_flushing() -> None:
        while not is_done.is_set():
            flushed.append(log.flush())
            assert flushed[-1] <= log.log_end_offset

    flusher = threading.Thread(target=keep_flushing)
    flusher.start()
    for batch in make_batches(0, 400):
        log.append(batch)
        assert bytes(log.read(log.log_end_offset - 1, 10_000)) == batch
    is_done.set()
    flusher.join(timeout=PATIENCE_S)
    assert flushed == sorted(flushed)
    assert log.flush() == 400
    log.close()

"""The log of a partition: written, rolled, read, walked over, cut, made durable, and poisoned."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from random import Random

import pytest
from tests.support.batch_maker import make_batch, make_batches
from tests.support.faulty_files import Fault, FaultyFiles, MemoryFile, PowerCutError
from tests.unit.storage.local_logs import (
    BASES,
    BATCHES,
    CONFIG,
    HERE,
    NEW,
    Keeper,
    clean,
    content,
    crashed,
    filled,
    loaded,
    segment,
)

from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.log_directory_files import LogDirectoryFiles
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import (
    CorruptLogError,
    DiskError,
    InvalidAppendError,
    InvalidTruncationError,
    OffsetOutOfRangeError,
    PoisonedError,
)
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log import segment_scan
from kvorum.storage.log.batch_header import read_header
from kvorum.storage.log.epochs import LEADER_EPOCH_CHECKPOINT
from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.segment_scan import BadBatchError, scan_batches
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.names import LOG_SUFFIX, offset_name
from kvorum.storage.small_files.meta_properties import MetaProperties

WEEK = replace(CONFIG, segment_bytes=10_000, segment_ms=1_000)
END = 20
MANY_SEGMENTS = 60
METADATA_LOG = Path("/log")
SEGMENT = METADATA_LOG / f"{0:020d}.log"
OF_ANY_SIZE = [
    make_batch(0),
    make_batch(1, values=(b"x" * 700,)),
    make_batch(2, values=(b"y" * 90, b"z")),
    make_batch(4),
]


def test_what_was_appended_is_read_across_segments(files: FaultyFiles) -> None:
    log = filled(files)
    assert content(log) == BATCHES
    assert [path.name for path in sorted(files.names) if path.suffix == ".log"] == [
        segment(base).name for base in BASES
    ]
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 20, 0)
    assert log.epoch_starts == ((1, 0), (3, 12))


def test_what_does_not_continue_the_log_is_refused() -> None:
    log = filled(FaultyFiles())
    for batch in (make_batch(21), make_batch(19), make_batch(20, epoch=2), b""):
        with pytest.raises(InvalidAppendError):
            log.append(batch)
    for offset in (-1, 21):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, 100)
    assert content(log) == BATCHES


def test_a_flush_moves_the_recovery_point_and_has_it_kept(files: FaultyFiles) -> None:
    log = filled(files)
    log.update_files(now_ms=0)
    files.calls.clear()
    assert log.flush() == log.recovery_point == 20
    assert files.calls == [("sync", segment(18).name), ("keep", "20")]
    assert log.flush() == 20
    assert len(files.calls) == 2
    log.close()
    assert Keeper(files).kept[-1] == ("keep durably", "20")


def test_a_flush_leaves_the_directory_of_a_closed_log_alone(files: FaultyFiles) -> None:
    """Another directory may have its name, or none: its topic was deleted or its replica moved."""
    log = filled(files)
    log.abandon()
    files.calls.clear()
    assert log.flush() == log.recovery_point == 0
    assert files.calls == []


def test_full_truncation_starts_again_at_any_offset(files: FaultyFiles) -> None:
    log = filled(files)
    log.truncate_fully_and_start_at(100, now_ms=0)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (100, 100, 100)
    assert log.epoch_starts == ()
    log.append(make_batch(100, epoch=4))
    with pytest.raises(InvalidTruncationError):
        log.truncate_to(99, now_ms=0)
    again = loaded(files.after_process_crash(), crashed(100, 100)).log
    assert content(again) == [make_batch(100, epoch=4)]


@pytest.mark.parametrize("start", range(1, 21))
def test_giving_up_old_records_removes_whole_segments_and_older_epochs(start: int) -> None:
    files = FaultyFiles()
    log = filled(files)
    removed = log.increment_log_start_offset(start, now_ms=0)
    assert removed == len([base for base in BASES[1:] if base <= start])
    assert log.log_start_offset == start
    assert log.epoch_starts[0] == (1 if start < 12 else 3, start)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(start - 1, 100)
    log.close()
    again = loaded(files.after_process_crash(), clean(20, start)).log
    assert (again.log_start_offset, again.log_end_offset) == (start, 20)
    # As in Kafka, an epoch without records is forgotten.
    assert again.epoch_starts == (log.epoch_starts if start < 20 else ())


def test_an_epoch_begins_without_a_wait_and_is_stored_before_its_records_are_durable() -> None:
    files = FaultyFiles()
    log = filled(files)
    log.flush()
    files.calls.clear()
    log.assign_epoch(5)
    assert files.calls == []
    log.append(make_batch(20, epoch=5))
    assert {operation for operation, _ in files.calls} == {"write"}
    files.calls.clear()
    log.flush()
    stored, kept = (LEADER_EPOCH_CHECKPOINT + ".tmp", ("keep", "21"))
    assert files.calls.index(("rename", stored)) < files.calls.index(kept)
    again = loaded(files.after_power_cut(Random(1)), crashed(21)).log
    assert again.epoch_starts == ((1, 0), (3, 12), (5, 20))


@pytest.mark.parametrize("start", [3, 6, 13, 20])
def test_giving_up_old_records_waits_for_no_disk(files: FaultyFiles, start: int) -> None:
    log = filled(files)
    files.calls.clear()
    count = log.increment_log_start_offset(start, now_ms=0)
    assert (files.calls, log.first_stored_offset) == ([], 0)
    assert log.has_files_to_update(now_ms=0)
    log.update_files(now_ms=0)
    synced = [name for operation, name in files.calls if operation == "sync_directory"]
    # One for each segment, the oldest first, and one for the file of the epochs.
    assert synced == [segment(0).parent.name] * (count + 1)
    assert log.first_stored_offset == BASES[count]
    assert not log.has_files_to_update(now_ms=0)


@pytest.mark.parametrize("seed", range(20))
def test_a_flush_removes_the_files_of_deleted_segments_before_what_follows_counts_as_durable(
    files: FaultyFiles, seed: int
) -> None:
    log = filled(files)
    log.increment_log_start_offset(13, now_ms=0)
    log.flush()
    assert content(loaded(files.after_power_cut(Random(seed)), crashed(20)).log) == BATCHES[12:]


@pytest.mark.parametrize("call", range(30))
def test_a_power_cut_during_the_removal_of_files_leaves_no_gap(call: int) -> None:
    files = FaultyFiles()
    log = filled(files)
    log.flush()
    log.increment_log_start_offset(19, now_ms=0)
    files.calls_until_power_cut = call
    with suppress(PowerCutError):
        log.update_files(now_ms=0)
    again = loaded(files.after_power_cut(Random(call)), crashed(20)).log
    assert content(again) == BATCHES[again.log_start_offset :]


def test_the_removal_of_many_files_compares_none_with_all_others(
    files: FaultyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = loaded(files, config=replace(CONFIG, segment_bytes=1)).log
    for batch in make_batches(0, MANY_SEGMENTS):
        log.append(batch)
    log.increment_log_start_offset(MANY_SEGMENTS, now_ms=0)
    log.update_files(now_ms=0)
    compared: list[Path] = []
    are_equal = PurePath.__eq__

    def noted(path: PurePath, other: object) -> bool:
        compared.append(Path(path))
        return are_equal(path, other)

    monkeypatch.setattr(PurePath, "__eq__", noted)
    removed = log.update_files(now_ms=CONFIG.delete_delay_ms)
    assert removed >= MANY_SEGMENTS
    assert len(compared) <= removed


def test_a_log_that_begins_where_a_deleted_segment_began_is_a_new_one(files: FaultyFiles) -> None:
    log = filled(files)
    log.increment_log_start_offset(13, now_ms=0)
    log.truncate_fully_and_start_at(6, now_ms=0)
    log.append(make_batch(6, epoch=4))
    assert content(log) == [make_batch(6, epoch=4)]
    log.close()
    assert content(loaded(files.after_process_crash(), clean(7, 6)).log) == [make_batch(6, epoch=4)]


def test_a_sync_that_fails_poisons_the_log(files: FaultyFiles) -> None:
    log = filled(files)
    files.faults = [Fault("sync", 1)]
    with pytest.raises(DiskError):
        log.flush()
    assert log.recovery_point == 0
    for use in (
        log.flush,
        lambda: log.append(make_batch(20, epoch=3)),
        lambda: log.read(0, 100),
        lambda: log.truncate_to(0, now_ms=0),
        lambda: log.truncate_fully_and_start_at(0, now_ms=0),
        lambda: log.increment_log_start_offset(3, now_ms=0),
    ):
        with pytest.raises(PoisonedError, match="cannot be used any more"):
            use()
    before = len(files.calls)
    log.close()
    assert [call for call in files.calls[before:] if call[0] != "close"] == []


@pytest.mark.parametrize("jitter_ms", [0, 300])
def test_a_segment_without_timestamps_ends_by_the_wall_clock(jitter_ms: int) -> None:
    log = loaded(FaultyFiles(), NEW, WEEK).log
    log.time_rolls(lambda: jitter_ms, now_ms=5_000)
    end_ms = 6_000 - jitter_ms
    for offset, now_ms in enumerate((5_000, end_ms, end_ms + 1, end_ms + 2)):
        log.append(make_batch(offset, timestamp=-1), now_ms=now_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


@pytest.mark.parametrize("jitter_ms", [0, 300])
def test_a_segment_with_timestamps_ends_by_these(jitter_ms: int) -> None:
    log = loaded(FaultyFiles(), NEW, WEEK).log
    log.time_rolls(lambda: jitter_ms, now_ms=5_000)
    for offset, timestamp in enumerate((50, 1_050 - jitter_ms, 1_051 - jitter_ms)):
        log.append(make_batch(offset, timestamp=timestamp), now_ms=10**9)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_the_age_is_that_of_the_first_batch_also_where_it_has_no_timestamp() -> None:
    log = loaded(FaultyFiles(), NEW, WEEK).log
    log.time_rolls(lambda: 0, now_ms=0)
    for offset, timestamp in enumerate((-1, 50, 9_000)):
        log.append(make_batch(offset, timestamp=timestamp), now_ms=10)
    assert [segment.base_offset for segment in log.segments] == [0]


def bytes_from(offset: int, *, end_offset: int = END) -> bytes:
    """Return the batches of the segment that holds `offset` from there on, each of one record."""
    base = max(base for base in BASES if base <= offset)
    end = min([other for other in BASES if other > base] + [END])
    return b"".join(BATCHES[offset : min(end, end_offset)])


@pytest.mark.parametrize("end_offset", [END, 13, 18, 1])
def test_a_range_is_what_the_log_holds_cut_by_bytes(end_offset: int) -> None:
    log = filled(FaultyFiles())
    for offset in range(end_offset):
        everything = bytes_from(offset, end_offset=end_offset)
        first = read_header(everything).size
        for max_bytes in (0, 1, first, first + 1, first + 70, 1 << 20):
            found = log.read_range(offset, max_bytes, end_offset=end_offset)
            assert found is not None
            assert bytes(found.records) == everything[: max(max_bytes, first)]


def test_nothing_is_read_at_the_end_and_beyond_what_may_be_read() -> None:
    log = filled(FaultyFiles())
    assert log.read_range(END, 100, end_offset=END) is None
    assert log.read_range(7, 100, end_offset=7) is None
    with pytest.raises(OffsetOutOfRangeError):
        log.read_range(END + 1, 100, end_offset=END)


def test_the_bound_of_a_range_is_the_next_entry_of_the_index() -> None:
    segment = filled(FaultyFiles()).segments[0]
    entries = list(segment.indexes.offset.entries())
    assert entries
    for position in range(segment.size + 2):
        behind = [offset for offset, place in entries if place >= position]
        assert segment.offset_beyond(position) == (behind[0] if behind else None)


def test_damaged_records_are_left_to_the_reader_and_damaged_headers_are_not() -> None:
    files = FaultyFiles()
    log = filled(files)
    content = files.names[HERE / offset_name(0, LOG_SUFFIX)].content
    size = len(BATCHES[0])
    content[size - 1] ^= 1
    found = log.read_range(0, 1, end_offset=END)
    assert found is not None
    assert bytes(found.records) == bytes(content[:size])
    with pytest.raises(CorruptLogError):
        log.read(0, 1)
    content[16] = 7
    with pytest.raises(CorruptLogError, match="batch format 7"):
        log.read_range(0, 1, end_offset=END)


def test_a_range_of_a_log_directory_outlives_its_file(tmp_path: Path) -> None:
    """A broker sends such a range; without the descriptor there would be no sendfile."""
    failures: list[Path] = []
    channel = LogDirFailureChannel(lambda path, _: failures.append(path))
    files = LogDirectoryFiles(RealFileSystem(), tmp_path, channel, OpenFiles(1))
    path = tmp_path / "0.log"
    file = files.open(path, create=True)
    file.write_at(0, b"0123456789")
    records = FileRecords(file, 2, 5)
    file.close()
    files.remove(path)
    assert records.descriptor is not None
    assert bytes(records) == b"23456"
    assert failures == []


def scan(data: bytes, *, verify: bool = True) -> list[tuple[int, int]]:
    path = Path("/f")
    file = FaultyFiles(names={path: MemoryFile(data)}).open(path)
    found = scan_batches(file, end=len(data), verify=verify)
    return [(position, header.base_offset) for position, header in found]


@pytest.mark.parametrize("chunk_bytes", [*range(61, 75), 100, 200, 800, 10_000])
def test_batches_are_found_whatever_the_size_of_a_read(
    monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(segment_scan, "CHUNK_BYTES", chunk_bytes)
    positions = [sum(map(len, OF_ANY_SIZE[:index])) for index in range(4)]
    expected = list(zip(positions, [0, 1, 2, 4], strict=True))
    data = b"".join(OF_ANY_SIZE)
    assert scan(data) == expected
    assert scan(data, verify=False) == expected
    for size in range(len(data)):
        if size in positions:
            assert len(scan(data[:size])) == positions.index(size)
            continue
        with pytest.raises(BadBatchError) as caught:
            scan(data[:size])
        assert caught.value.position == max(start for start in positions if start <= size)


@pytest.mark.parametrize("chunk_bytes", [100, 10_000])
def test_a_wrong_checksum_is_found_whatever_the_size_of_a_read(
    monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(segment_scan, "CHUNK_BYTES", chunk_bytes)
    data = bytearray(b"".join(OF_ANY_SIZE))
    data[len(OF_ANY_SIZE[0]) + 500] ^= 1
    with pytest.raises(BadBatchError, match="checksum"):
        scan(bytes(data))
    assert len(scan(bytes(data), verify=False)) == 4


def running_log() -> tuple[MetadataLog, bytearray]:
    files = FaultyFiles()
    config = LogConfig(index_interval_bytes=10_000)
    log = MetadataLog.open(METADATA_LOG, files=files, config=config, now_ms=0)
    for batch in make_batches(0, 10):
        log.local_log.append(batch)
    return log, files.names[SEGMENT].content


def test_a_log_that_rots_while_it_is_open_says_so_on_reading() -> None:
    log, content = running_log()
    size = len(make_batch(0, values=(b"x" * 20,)))
    content[3 * size + 8] = 0xFF
    assert len(log.local_log.read(2, size)) == size
    for offset, max_bytes in ((5, 1), (0, 10_000)):
        with pytest.raises(CorruptLogError) as caught:
            log.local_log.read(offset, max_bytes)
        assert (caught.value.file, caught.value.offset) == (SEGMENT, 3 * size)


def test_a_log_that_was_shortened_while_it_is_open_says_so_on_reading() -> None:
    log, content = running_log()
    del content[200:]
    with pytest.raises(CorruptLogError, match="no batch holds offset 8"):
        log.local_log.read(8, 100)


def test_a_read_that_the_disk_refuses_does_not_poison_the_log() -> None:
    files = FaultyFiles()
    log = MetadataLog.open(METADATA_LOG, files=files, now_ms=0).local_log
    log.append(make_batch(0))
    files.fail("read", 1)
    with pytest.raises(DiskError, match="reading failed"):
        log.read(0, 100)
    assert bytes(log.read(0, 100)) == make_batch(0)


def test_real_files_read_up_to_their_end(tmp_path: Path) -> None:
    file = RealFileSystem().open(tmp_path / "f", create=True)
    file.write_at(0, b"0123456789")
    assert file.read_at(4, 100) == b"456789"
    assert file.read_at(4, 3) == b"456"
    assert file.read_at(10, 3) == b""
    file.truncate(2)
    assert (file.size(), file.read_at(0, 10)) == (2, b"01")
    file.close()
    file.close()


def test_meta_properties_in_words() -> None:
    properties = MetaProperties(cluster_id="c", node_id=1, directory_id=bytes(16))
    text = "MetaProperties(version=1, clusterId=c, nodeId=1, directoryId=AAAAAAAAAAAAAAAAAAAAAA)"
    assert str(properties) == text
    assert str(MetaProperties(version=0)) == "MetaProperties(version=0)"


def test_a_truncation_lowers_the_recovery_point_before_it_stores_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread that stores the points of all logs must not store the higher one after it."""
    log = filled(FaultyFiles())
    log.flush()
    points: list[tuple[int, int]] = []

    def noted(_: Keeper, offset: int, *, durably: bool) -> None:
        points.append((offset, log.recovery_point))
        assert durably

    monkeypatch.setattr(Keeper, "write", noted)
    log.truncate_to(10, now_ms=0)
    assert points == [(10, 10)]

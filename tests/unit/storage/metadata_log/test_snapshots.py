"""Writing, finding, reading, checking and dropping snapshots."""

from pathlib import Path

import pytest
from tests.support.batch_maker import make_batch, make_batches, make_snapshot
from tests.support.faulty_files import FaultyFiles, MemoryFile
from tests.unit.storage import metadata_logs

from kvorum.storage.errors import CorruptSnapshotError, InvalidSnapshotIdError, MissingSnapshotError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.retention import clean
from kvorum.storage.metadata_log.snapshot_reader import (
    check_snapshot,
    read_last_contained_log_timestamp,
    read_snapshot_batches,
)
from kvorum.storage.metadata_log.snapshots import RawSnapshotReader, SnapshotStore
from kvorum.storage.names import parse_snapshot_name, snapshot_name
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import ValidityKind, ValidOffsetAndEpoch

SMALL = LogConfig(segment_bytes=500, retention_bytes=-1, retention_ms=-1)


def open_log(directory: Path, config: LogConfig = SMALL) -> MetadataLog:
    return metadata_logs.open_in(directory, config)


def filled(directory: Path, config: LogConfig = SMALL) -> MetadataLog:
    log = open_log(directory, config)
    for batch in make_batches(0, 20) + make_batches(20, 20, epoch=2):
        log.local_log.append(batch)
    return log


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    return filled(tmp_path)


def add_snapshot(log: MetadataLog, offset: int, epoch: int, *, timestamp: int = 5_000) -> None:
    writer = log.create_snapshot(OffsetAndEpoch(offset, epoch), high_watermark=log.log_end_offset)
    assert writer is not None
    writer.append(make_snapshot(epoch=epoch, timestamp=timestamp))
    writer.freeze()


def test_names() -> None:
    name = "00000000000000001875-0000000008.checkpoint"
    snapshot_id = OffsetAndEpoch(1875, 8)
    assert snapshot_name(snapshot_id) == name
    found = parse_snapshot_name(name)
    assert found is not None
    assert (found.id, found.is_partial, found.is_deleted) == (snapshot_id, False, False)
    partial = parse_snapshot_name(name.replace(".check", "-1273901.check") + ".part")
    assert partial is not None
    assert (partial.id, partial.is_partial) == (snapshot_id, True)
    deleted = parse_snapshot_name(name + ".deleted")
    assert deleted is not None
    assert deleted.is_deleted
    assert parse_snapshot_name("00000000000000001875.log") is None
    assert parse_snapshot_name("bootstrap.checkpoint") is None


def test_snapshots_are_ordered_by_epoch_first() -> None:
    ids = [OffsetAndEpoch(5, 2), OffsetAndEpoch(9, 1), OffsetAndEpoch(3, 1)]
    assert sorted(ids) == [ids[2], ids[1], ids[0]]
    assert max(ids) == ids[0]


def test_a_frozen_snapshot_is_read_only_and_known(log: MetadataLog, tmp_path: Path) -> None:
    writer = log.create_snapshot(OffsetAndEpoch(30, 2), high_watermark=40)
    assert writer is not None
    data = make_snapshot(epoch=2)
    writer.append(data[:50])
    writer.append(memoryview(data)[50:])
    assert log.snapshots.ids() == []
    assert [path.suffix for path in tmp_path.glob("*.checkpoint*")] == [".part"]
    check_snapshot(writer)
    writer.freeze()
    path = log.snapshots.path(OffsetAndEpoch(30, 2))
    assert list(tmp_path.glob("*.checkpoint*")) == [path]
    assert path.stat().st_mode & 0o777 == 0o400
    assert log.snapshots.latest() == log.snapshots.earliest() == OffsetAndEpoch(30, 2)
    reader = log.snapshots.open(OffsetAndEpoch(30, 2))
    assert reader is not None
    assert reader.size == len(data)
    assert reader.read_at(10, 20) == data[10:30]
    assert reader.read_at(len(data) - 3, 20) == data[-3:]
    assert reader.read_at(len(data) + 3, 20) == b""
    reader.close()


def test_a_snapshot_that_exists_or_lies_below_the_log_is_not_begun(log: MetadataLog) -> None:
    add_snapshot(log, 30, 2)
    assert log.create_snapshot(OffsetAndEpoch(30, 2), high_watermark=40) is None
    assert log.delete_before_snapshot(OffsetAndEpoch(30, 2), now_ms=0)
    assert log.create_snapshot(OffsetAndEpoch(10, 1), high_watermark=40) is None


@pytest.mark.parametrize(
    ("offset", "epoch", "why"),
    [(36, 2, "above the high"), (30, 1, "diverging"), (30, 3, "diverging"), (41, 2, "above the")],
)
def test_a_snapshot_the_log_never_had_is_refused(
    log: MetadataLog, offset: int, epoch: int, why: str
) -> None:
    with pytest.raises(InvalidSnapshotIdError, match=why):
        log.create_snapshot(OffsetAndEpoch(offset, epoch), high_watermark=35)


def test_a_snapshot_within_a_batch_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.local_log.append(make_batch(0, values=(b"a", b"b", b"c")))
    with pytest.raises(InvalidSnapshotIdError, match="within a batch"):
        log.create_snapshot(OffsetAndEpoch(2, 1), high_watermark=3)
    assert log.create_snapshot(OffsetAndEpoch(3, 1), high_watermark=3) is not None


def test_dropping_the_log_below_a_snapshot(log: MetadataLog, tmp_path: Path) -> None:
    add_snapshot(log, 12, 1)
    add_snapshot(log, 25, 2)
    assert log.validate_offset_and_epoch(OffsetAndEpoch(0, 0)).kind is ValidityKind.VALID
    assert log.delete_before_snapshot(OffsetAndEpoch(25, 2), now_ms=0)
    log.local_log.update_files(now_ms=0)
    assert (log.log_start_offset, log.snapshots.ids()) == (25, [OffsetAndEpoch(25, 2)])
    segments = sorted(int(path.stem) for path in tmp_path.glob("*.log"))
    assert segments[0] <= 25 < segments[1]
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n1\n2 25\n"
    for position in ((0, 0), (24, 2), (25, 1), (30, 1)):
        answer = log.validate_offset_and_epoch(OffsetAndEpoch(*position))
        assert answer == (ValidityKind.SNAPSHOT, OffsetAndEpoch(25, 2))
    assert log.validate_offset_and_epoch(OffsetAndEpoch(25, 2)).kind is ValidityKind.VALID
    assert log.end_offset_for_epoch(2) == OffsetAndEpoch(40, 2)
    log.local_log.close()
    again = open_log(tmp_path)
    assert again.log_start_offset == segments[0]
    assert again.snapshots.ids() == [OffsetAndEpoch(25, 2)]
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n1\n2 25\n"


def test_a_log_opens_whose_deleted_segments_were_left_by_a_crash(tmp_path: Path) -> None:
    log = filled(tmp_path)
    for offset, epoch in ((12, 1), (25, 2), (39, 2)):
        add_snapshot(log, offset, epoch)
    assert log.delete_before_snapshot(OffsetAndEpoch(25, 2), now_ms=0)
    log.local_log.update_files(now_ms=0)
    first = log.local_log.first_stored_offset
    assert log.delete_before_snapshot(OffsetAndEpoch(39, 2), now_ms=0)
    log.local_log.abandon()
    again = open_log(tmp_path)
    assert (again.log_start_offset, again.log_end_offset) == (first, 40)
    assert again.snapshots.ids() == [OffsetAndEpoch(39, 2)]


def test_what_the_log_has_forgotten_is_not_believed_after_a_restart(tmp_path: Path) -> None:
    """The oldest segment reaches below the first epoch that is remembered."""
    log = filled(tmp_path)
    add_snapshot(log, 27, 2)
    log.delete_before_snapshot(OffsetAndEpoch(27, 2), now_ms=0)
    log.local_log.close()
    again = open_log(tmp_path)
    assert again.log_start_offset < 26 < again.local_log.epoch_starts[0].start_offset
    snapshot = ValidOffsetAndEpoch(ValidityKind.SNAPSHOT, OffsetAndEpoch(27, 2))
    assert again.validate_offset_and_epoch(OffsetAndEpoch(26, 2)) == snapshot
    with pytest.raises(InvalidSnapshotIdError, match="is not of this log: snapshot at"):
        again.create_snapshot(OffsetAndEpoch(26, 2), high_watermark=40)
    assert again.validate_offset_and_epoch(OffsetAndEpoch(27, 2)).kind is ValidityKind.VALID
    assert again.validate_offset_and_epoch(OffsetAndEpoch(28, 2)).kind is ValidityKind.VALID


def test_what_cannot_be_dropped_stays(log: MetadataLog) -> None:
    add_snapshot(log, 12, 1)
    assert not log.delete_before_snapshot(OffsetAndEpoch(13, 1), now_ms=0)
    assert log.delete_before_snapshot(OffsetAndEpoch(12, 1), now_ms=0)
    assert not log.delete_before_snapshot(OffsetAndEpoch(12, 1), now_ms=0)


def test_opening_clears_away_what_kafka_clears_away(log: MetadataLog, tmp_path: Path) -> None:
    add_snapshot(log, 30, 2)
    log.local_log.close()
    for name in (
        "00000000000000000035-0000000002-123.checkpoint.part",
        "00000000000000000020-0000000001.checkpoint.deleted",
        "00000000000000000000.log.deleted",
    ):
        (tmp_path / name).write_bytes(b"rest")
    assert len(open_log(tmp_path).recovery.removed_files) == 3
    assert sorted(path.name for path in tmp_path.glob("*.checkpoint*")) == [
        "00000000000000000030-0000000002.checkpoint"
    ]
    assert list(tmp_path.glob("*.deleted")) == []


def test_a_log_above_zero_without_a_snapshot_does_not_open(tmp_path: Path) -> None:
    log = filled(tmp_path)
    add_snapshot(log, 30, 2)
    log.delete_before_snapshot(OffsetAndEpoch(30, 2), now_ms=0)
    log.local_log.close()
    (tmp_path / "00000000000000000030-0000000002.checkpoint").unlink()
    with pytest.raises(MissingSnapshotError):
        open_log(tmp_path)


def test_a_snapshot_that_someone_removed_is_no_longer_there(log: MetadataLog) -> None:
    add_snapshot(log, 30, 2)
    log.snapshots.path(OffsetAndEpoch(30, 2)).unlink()
    assert log.snapshots.open(OffsetAndEpoch(30, 2)) is None
    assert log.snapshots.ids() == []


def test_retention_by_size_keeps_the_latest(tmp_path: Path) -> None:
    log = filled(tmp_path, LogConfig(segment_bytes=500, retention_bytes=0, retention_ms=-1))
    for offset in (10, 20, 30):
        add_snapshot(log, offset, 1 if offset <= 20 else 2)
    assert clean(log, now_ms=0)
    assert log.snapshots.ids() == [OffsetAndEpoch(30, 2)]
    assert log.log_start_offset == 30
    assert not clean(log, now_ms=0)
    log.local_log.update_files(now_ms=0)
    assert list(tmp_path.glob("*.deleted"))
    log.local_log.update_files(now_ms=60_000)
    assert list(tmp_path.glob("*.deleted")) == []


def test_retention_by_size_drops_no_more_than_needed(log: MetadataLog, tmp_path: Path) -> None:
    for offset in (10, 20, 30):
        add_snapshot(log, offset, 1 if offset <= 20 else 2)
    total = log.local_log.size_bytes + 3 * len(make_snapshot(epoch=1))
    log.local_log.close()
    config = LogConfig(segment_bytes=500, retention_bytes=total - 1, retention_ms=-1)
    again = open_log(tmp_path, config)
    assert clean(again, now_ms=0)
    assert again.snapshots.ids() == [OffsetAndEpoch(20, 1), OffsetAndEpoch(30, 2)]


def test_a_snapshot_that_was_finished_below_the_logs_start_goes_with_the_next_cleaning(
    tmp_path: Path,
) -> None:
    """Its thread was still writing when a later one arrived from the leader."""
    log = filled(tmp_path, LogConfig(segment_bytes=500, retention_bytes=0, retention_ms=-1))
    late = log.create_snapshot(OffsetAndEpoch(10, 1), high_watermark=40)
    assert late is not None
    late.append(make_snapshot(epoch=1))
    add_snapshot(log, 30, 2)
    log.delete_before_snapshot(OffsetAndEpoch(30, 2), now_ms=0)
    late.freeze()
    add_snapshot(log, 40, 2)
    assert clean(log, now_ms=0)
    assert log.snapshots.ids() == [OffsetAndEpoch(40, 2)]


def test_retention_by_age_goes_by_the_last_contained_timestamp(tmp_path: Path) -> None:
    log = filled(tmp_path, LogConfig(segment_bytes=500, retention_bytes=-1, retention_ms=1_000))
    for offset in (10, 20, 30):
        add_snapshot(log, offset, 1 if offset <= 20 else 2, timestamp=offset * 100)
    assert not clean(log, now_ms=2_000)
    assert clean(log, now_ms=2_001)
    assert log.log_start_offset == 20
    assert clean(log, now_ms=1_000_000)
    assert log.snapshots.ids() == [OffsetAndEpoch(30, 2)]


def reader_of(data: bytes) -> RawSnapshotReader:
    files = FaultyFiles(names={Path("/s"): MemoryFile(data)})
    return RawSnapshotReader(OffsetAndEpoch(3, 1), Path("/s"), files.open(Path("/s")), len(data))


def test_a_sound_snapshot_is_read_batch_by_batch() -> None:
    data = make_snapshot(epoch=4)
    batches = list(read_snapshot_batches(reader_of(data)))
    assert [header.base_offset for header, _ in batches] == [0, 1, 4]
    assert b"".join(bytes(batch) for _, batch in batches) == data


@pytest.mark.parametrize("size", range(len(make_snapshot(epoch=1))))
def test_a_snapshot_cut_anywhere_is_refused(size: int) -> None:
    with pytest.raises(CorruptSnapshotError):
        check_snapshot(reader_of(make_snapshot(epoch=1)[:size]))


def test_a_flipped_bit_in_a_snapshot_is_noticed() -> None:
    data = make_snapshot(epoch=1)
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 2
        batch_start = max(start for start in starts(data) if start <= position)
        # The leader epoch lies outside the checksum, and says nothing in a snapshot.
        if position - batch_start in range(12, 16):
            continue
        with pytest.raises(CorruptSnapshotError):
            check_snapshot(reader_of(bytes(flipped)))


def starts(data: bytes) -> list[int]:
    found = [0]
    while found[-1] < len(data):
        found.append(found[-1] + 12 + int.from_bytes(data[found[-1] + 8 : found[-1] + 12]))
    return found


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (make_batch(0), "does not begin with a snapshot header"),
        (make_batch(0, control_type=4), "does not begin with a snapshot header"),
        (make_snapshot(epoch=1) + make_batch(5), "behind the snapshot footer"),
        (make_snapshot(epoch=1) * 2, "behind the snapshot footer"),
        (make_batch(0, control_type=3) + make_batch(0), "offset 0 instead of 1"),
    ],
)
def test_anything_that_is_not_a_snapshot_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(CorruptSnapshotError, match=why):
        check_snapshot(reader_of(data))


def test_the_timestamp_of_a_snapshot(log: MetadataLog) -> None:
    add_snapshot(log, 30, 2, timestamp=1_234_567_890_123)
    store: SnapshotStore = log.snapshots
    assert read_last_contained_log_timestamp(store, OffsetAndEpoch(30, 2)) == 1_234_567_890_123
    assert read_last_contained_log_timestamp(store, OffsetAndEpoch(31, 2)) is None


def test_a_snapshot_below_the_logs_start_does_not_cover_it(tmp_path: Path) -> None:
    (tmp_path / snapshot_name(OffsetAndEpoch(5, 1))).touch()
    with pytest.raises(MissingSnapshotError):
        SnapshotStore(tmp_path, RealFileSystem()).load(log_start_offset=10)


def test_a_log_behind_its_latest_snapshot_is_replaced_by_it_at_the_start(tmp_path: Path) -> None:
    filled(tmp_path).local_log.close()
    metadata_logs.add_snapshot(SnapshotStore(tmp_path, RealFileSystem()), OffsetAndEpoch(50, 3))
    with_snapshot = open_log(tmp_path).local_log
    assert (with_snapshot.log_start_offset, with_snapshot.log_end_offset) == (50, 50)
    with_snapshot.close()

"""Directories and snapshots of real Kafka: read, and written again byte for byte."""

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.golden_data import metadata_directories
from tests.unit.storage.local_logs import content
from tests.unit.storage.metadata_logs import open_in

from kvorum.storage.errors import CorruptSnapshotError, DiskError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.batch_header import split_batches
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.bootstrap_checkpoint import (
    read_bootstrap_records,
    write_bootstrap_snapshot,
)
from kvorum.storage.metadata_log.snapshot_reader import (
    check_snapshot,
    read_last_contained_log_timestamp,
)
from kvorum.storage.metadata_log.snapshot_writer import BATCH_BYTES_MAX, SnapshotWriter
from kvorum.storage.metadata_log.snapshots import RawSnapshotReader
from kvorum.storage.names import parse_snapshot_name
from kvorum.storage.small_files.clean_shutdown import take_clean_shutdown, write_clean_shutdown
from kvorum.storage.small_files.meta_properties import (
    decode_meta_properties,
    encode_meta_properties,
)
from kvorum.storage.small_files.quorum_state import decode_quorum_state, encode_quorum_state
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.records import RecordBatch, decode_control_record, read_batches

FILES = RealFileSystem()
SNAPSHOT_0 = "00000000000000000000-0000000000.checkpoint"


@pytest.fixture
def copies(golden_sets: Path, tmp_path: Path) -> list[Path]:
    """Copies of all metadata log directories, free to be written to."""
    found: list[Path] = []
    for source in metadata_directories(golden_sets):
        target = tmp_path / source.relative_to(golden_sets)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("dumps"))
        found.append(target)
    assert len(found) >= 8
    return found


def log_bytes(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}


def test_every_directory_opens_and_stays_as_it_is(copies: list[Path]) -> None:
    for directory in copies:
        logs = log_bytes(directory)
        epochs = (directory / "leader-epoch-checkpoint").read_bytes()
        log = open_in(directory)
        assert log.recovery.torn_tail is None
        assert b"".join(content(log.local_log)) == b"".join(logs.values())
        log.local_log.close()
        assert log_bytes(directory) == logs
        assert (directory / "leader-epoch-checkpoint").read_bytes() == epochs
        again = open_in(directory)
        assert again.log_end_offset == log.log_end_offset
        assert again.last_epoch == log.last_epoch
        assert again.recovery.lines() == []
        again.local_log.close()


def test_ends_and_epochs_are_those_of_the_small_files(copies: list[Path]) -> None:
    """A log closed by Kafka leaves a producer snapshot named after its end."""
    for directory in copies:
        closed_at = max((int(path.stem) for path in directory.glob("*.snapshot")), default=0)
        lines = (directory / "leader-epoch-checkpoint").read_text().splitlines()
        log = open_in(directory)
        assert log.log_end_offset >= closed_at
        assert str(log.last_epoch) == lines[-1].split()[0]
        log.local_log.close()


def test_appending_the_same_batches_makes_the_same_files(
    copies: list[Path], tmp_path: Path
) -> None:
    """Indexes are compared for segments that Kafka wrote in one go, without a restart within."""
    compared = 0
    for number, directory in enumerate(copies):
        first = min(directory.glob("*.log"))
        if int(first.stem) > 0:
            continue
        written = tmp_path / f"written-{number}"
        log = open_in(written, LogConfig(segment_bytes=first.stat().st_size)).local_log
        for path in sorted(directory.glob("*.log")):
            for _, batch in split_batches(memoryview(path.read_bytes())):
                log.append(batch)
        log.close()
        assert (written / first.name).read_bytes() == first.read_bytes()
        # The first epoch is where a log once started at a snapshot; the others must agree.
        epochs = (directory / "leader-epoch-checkpoint").read_text().splitlines()[3:]
        ours = (written / "leader-epoch-checkpoint").read_text().splitlines()[2:]
        assert ours[len(ours) - len(epochs) :] == epochs
        if len(log_bytes(directory)) > 1:
            for suffix in (".index", ".timeindex"):
                assert (written / first.name).with_suffix(suffix).read_bytes() == (
                    first.with_suffix(suffix).read_bytes()
                )
                compared += 1
    assert compared >= 4


def test_indexes_are_rebuilt_as_kafka_wrote_them(copies: list[Path]) -> None:
    compared = 0
    for directory in copies:
        *finished, _ = sorted(directory.glob("*.log"))
        for segment in finished:
            paths = [segment.with_suffix(suffix) for suffix in (".index", ".timeindex")]
            golden = [path.read_bytes() for path in paths]
            for path in paths:
                path.unlink()
            # A log that Kafka truncated or reopened here has its entries elsewhere.
            was_written_in_one_go = segment.stem == "0" * 20
            open_in(directory).local_log.close()
            if was_written_in_one_go:
                assert [path.read_bytes() for path in paths] == golden
                compared += 1
    assert compared >= 3


def test_every_snapshot_is_sound_and_has_its_timestamp(copies: list[Path]) -> None:
    seen = 0
    for directory in copies:
        log = open_in(directory)
        for snapshot_id in log.snapshots.ids():
            reader = log.snapshots.open(snapshot_id)
            assert reader is not None
            check_snapshot(reader)
            reader.close()
            timestamp = read_last_contained_log_timestamp(log.snapshots, snapshot_id)
            assert timestamp is not None
            assert timestamp > 1_500_000_000_000
            seen += 1
        log.local_log.close()
    assert seen >= 15


def test_every_bootstrap_checkpoint_is_sound(golden_sets: Path) -> None:
    paths = sorted(golden_sets.rglob("bootstrap.checkpoint"))
    assert paths
    for path in paths:
        assert parse_snapshot_name(path.name) is None
        handle = FILES.open(path, read_only=True)
        snapshot_id = parse_snapshot_name("0" * 20 + "-" + "0" * 10 + ".checkpoint")
        assert snapshot_id is not None
        check_snapshot(RawSnapshotReader(snapshot_id.id, path, handle, handle.size()))
        handle.close()


def test_every_quorum_state_is_written_back_byte_for_byte(golden_sets: Path) -> None:
    versions: set[int] = set()
    for path in sorted(golden_sets.rglob("quorum-state")):
        data = path.read_bytes()
        version = 0 if b'"data_version":0' in data else 1
        assert encode_quorum_state(decode_quorum_state(data, path), version) == data
        versions.add(version)
    assert versions == {0, 1}


def test_every_meta_properties_is_written_back_byte_for_byte(golden_sets: Path) -> None:
    paths = sorted(golden_sets.rglob("meta.properties"))
    assert len(paths) > 10
    for path in paths:
        data = path.read_bytes()
        text = data.decode().splitlines()[1].removeprefix("#").replace(" UTC", "")
        date = datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        assert encode_meta_properties(decode_meta_properties(data), now=date) == data


def test_every_clean_shutdown_file_is_understood(golden_sets: Path, tmp_path: Path) -> None:
    paths = sorted(golden_sets.rglob(".kafka_cleanshutdown"))
    assert paths
    for path in paths:
        shutil.copy(path, tmp_path)
        epoch = take_clean_shutdown(tmp_path, FILES).broker_epoch
        assert epoch is not None
        write_clean_shutdown(tmp_path, FILES, broker_epoch=epoch)
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@dataclass
class Sink:
    batches: list[bytes] = field(default_factory=list[bytes])

    def append(self, data: bytes) -> None:
        self.batches.append(data)


@dataclass
class Header:
    """The content of a golden snapshot's first batch."""

    last_contained_timestamp_ms: int
    kraft_version: int = 0
    voters: VotersRecord | None = None


def header_of(batch: RecordBatch) -> Header:
    header = Header(-1)
    for record in batch.records():
        message = decode_control_record(record).message
        if isinstance(message, SnapshotHeaderRecord):
            header.last_contained_timestamp_ms = message.last_contained_log_timestamp
        elif isinstance(message, KRaftVersionRecord):
            header.kraft_version = message.k_raft_version
        elif isinstance(message, VotersRecord):
            header.voters = message
    return header


def values_of(batches: list[RecordBatch]) -> list[bytes]:
    return [bytes(record.value or b"") for batch in batches for record in batch.records()]


def written_again(data: bytes) -> bytes:
    """Return a snapshot of the same content, written by us at the same times."""
    first, *middle, last = read_batches(data)
    header = header_of(first)
    sink = Sink()
    writer = SnapshotWriter(
        sink,
        epoch=first.partition_leader_epoch,
        last_contained_timestamp_ms=header.last_contained_timestamp_ms,
        now_ms=first.base_timestamp,
        kraft_version=header.kraft_version,
        voters=header.voters,
    )
    writer.append(values_of(middle), now_ms=first.base_timestamp)
    writer.flush(now_ms=middle[0].base_timestamp if middle else 0)
    writer.finish(now_ms=last.base_timestamp)
    return b"".join(sink.batches)


def test_every_golden_snapshot_is_written_again_byte_for_byte(golden_sets: Path) -> None:
    paths = sorted(golden_sets.rglob("*.checkpoint"))
    assert len(paths) > 25
    for path in paths:
        data = path.read_bytes()
        assert written_again(data) == data, path


def test_every_golden_bootstrap_file_is_read_and_written_again(
    golden_sets: Path, tmp_path: Path
) -> None:
    paths = sorted(golden_sets.rglob("metadata/*/bootstrap.checkpoint"))
    assert paths
    for path in paths:
        values = read_bootstrap_records(path, FILES)
        assert values
        folder = tmp_path / path.parent.name
        write_bootstrap_snapshot(
            folder, FILES, values=values, kraft_version=0, voters=None, now_ms=7
        )
        assert read_bootstrap_records(folder / SNAPSHOT_0, FILES) == values
        ours = list(read_batches((folder / SNAPSHOT_0).read_bytes()))
        golden = list(read_batches(path.read_bytes()))
        assert [shape(batch) for batch in ours[1:]] == [shape(batch) for batch in golden[1:]]


def shape(batch: RecordBatch) -> tuple[int, int, int, list[bytes | None]]:
    """Return all of a batch but its times."""
    values = [record.value for record in batch.records()]
    return batch.base_offset, batch.attributes, batch.partition_leader_epoch, values


def test_the_bootstrap_snapshot_of_a_new_quorum_holds_its_voters(
    golden_sets: Path, tmp_path: Path
) -> None:
    golden = next(golden_sets.glob(f"standalone-4.3.1/metadata/*-11/*/{'0' * 20}-*.checkpoint"))
    first, last = read_batches(golden.read_bytes())
    header = header_of(first)
    assert header.voters is not None
    write_bootstrap_snapshot(
        tmp_path,
        FILES,
        kraft_version=header.kraft_version,
        voters=header.voters,
        now_ms=first.base_timestamp,
    )
    ours = (tmp_path / golden.name).read_bytes()
    assert len(ours) == len(golden.read_bytes())
    assert [batch.base_offset for batch in read_batches(ours)] == [0, 3]
    assert last.base_offset == 3
    log = open_in(tmp_path)
    assert log.snapshots.latest() == BOOTSTRAP_SNAPSHOT_ID
    assert (log.log_end_offset, log.last_epoch) == (0, 0)


def test_data_batches_hold_1024_records_at_most() -> None:
    sink = Sink()
    writer = SnapshotWriter(sink, epoch=3, last_contained_timestamp_ms=1, now_ms=2)
    writer.append((b"%d" % number for number in range(1500)), now_ms=3)
    writer.append((b"%d" % number for number in range(1500, 2100)), now_ms=3)
    writer.finish(now_ms=4)
    batches = list(read_batches(b"".join(sink.batches)))
    assert [batch.record_count for batch in batches] == [1, 1024, 1024, 52, 1]
    assert [batch.base_offset for batch in batches] == [0, 1, 1025, 2049, 2101]
    assert {batch.partition_leader_epoch for batch in batches} == {3}
    assert values_of(batches[1:-1]) == [b"%d" % number for number in range(2100)]


def test_data_batches_stay_below_the_ceiling_in_bytes() -> None:
    sink = Sink()
    writer = SnapshotWriter(sink, epoch=1, last_contained_timestamp_ms=1, now_ms=2)
    writer.append([bytes(BATCH_BYTES_MAX // 2 + 1)] * 3, now_ms=3)
    writer.finish(now_ms=4)
    assert [len(batch) > 1_000_000 for batch in sink.batches] == [False, True, True, True, False]
    assert max(len(batch) for batch in sink.batches) < 8 * 1024 * 1024


def test_kraft_version_0_has_no_voters_in_its_snapshots() -> None:
    sink = Sink()
    SnapshotWriter(
        sink, epoch=1, last_contained_timestamp_ms=1, now_ms=2, voters=VotersRecord(version=0)
    ).finish(now_ms=3)
    first, _ = read_batches(b"".join(sink.batches))
    assert header_of(first) == Header(1)


def test_a_written_snapshot_is_checked_before_it_is_frozen(tmp_path: Path) -> None:
    log = open_in(tmp_path)
    raw = log.snapshots.create(OffsetAndEpoch(9, 2))
    assert raw is not None
    writer = SnapshotWriter(raw, epoch=2, last_contained_timestamp_ms=1, now_ms=2)
    writer.append([b"one", b"two"], now_ms=3)
    with pytest.raises(CorruptSnapshotError):
        check_snapshot(raw)
    writer.finish(now_ms=3)
    check_snapshot(raw)
    raw.freeze()
    assert log.snapshots.ids() == [OffsetAndEpoch(9, 2)]


def test_a_missing_bootstrap_file_is_none_and_a_broken_one_an_error(tmp_path: Path) -> None:
    path = tmp_path / SNAPSHOT_0
    assert read_bootstrap_records(path, FILES) is None
    write_bootstrap_snapshot(
        tmp_path, FILES, values=[b"value"], kraft_version=0, voters=None, now_ms=1
    )
    data = path.read_bytes()
    for bad in (b"", data[:-1], data[:100], data.replace(b"value", b"Value")):
        path.write_bytes(bad)
        with pytest.raises(CorruptSnapshotError):
            read_bootstrap_records(path, FILES)


def test_a_bootstrap_snapshot_that_fails_leaves_nothing() -> None:
    here = Path("/log")
    broken = FaultyFiles()
    broken.fail("write", 2)
    with pytest.raises(DiskError):
        write_bootstrap_snapshot(here, broken, kraft_version=1, voters=VotersRecord(), now_ms=1)
    assert broken.names == {}

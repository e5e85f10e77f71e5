"""Directories that real Kafka wrote: opened, read, and written again byte for byte."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.golden_data import metadata_directories
from tests.unit.storage.local_logs import content
from tests.unit.storage.metadata_logs import open_in

from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.batch_header import split_batches
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.snapshot_reader import (
    check_snapshot,
    read_last_contained_log_timestamp,
)
from kvorum.storage.metadata_log.snapshots import RawSnapshotReader
from kvorum.storage.names import parse_snapshot_name
from kvorum.storage.small_files.clean_shutdown import take_clean_shutdown, write_clean_shutdown
from kvorum.storage.small_files.meta_properties import (
    decode_meta_properties,
    encode_meta_properties,
)
from kvorum.storage.small_files.quorum_state import decode_quorum_state, encode_quorum_state

FILES = RealFileSystem()


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
        assert again.local_log.log_end_offset == log.local_log.log_end_offset
        assert again.last_epoch == log.last_epoch
        assert again.recovery.lines() == []
        again.local_log.close()


def test_ends_and_epochs_are_those_of_the_small_files(copies: list[Path]) -> None:
    """A log closed by Kafka leaves a producer snapshot named after its end."""
    for directory in copies:
        closed_at = max((int(path.stem) for path in directory.glob("*.snapshot")), default=0)
        lines = (directory / "leader-epoch-checkpoint").read_text().splitlines()
        log = open_in(directory)
        assert log.local_log.log_end_offset >= closed_at
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

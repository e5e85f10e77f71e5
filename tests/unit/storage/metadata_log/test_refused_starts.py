"""A start that is refused leaves the directory as it was: it may hold what saves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.batch_maker import make_batch, make_batches, make_snapshot
from tests.support.faulty_files import FaultyFiles, MemoryFile

from kvorum.storage.errors import MissingSnapshotError, StorageError
from kvorum.storage.log.batch_header import split_batches
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.names import snapshot_name
from kvorum.storage.small_files.partition_metadata import (
    PARTITION_METADATA,
    encode_partition_metadata,
)
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

HERE = Path("/log")
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)
BATCHES = make_batches(0, 20)
OLDER, LATEST = OffsetAndEpoch(14, 1), OffsetAndEpoch(16, 1)
EPOCHS = HERE / "leader-epoch-checkpoint"
FLUSHED = HERE / "kvorum-flushed-offset"


def open_log(files: FaultyFiles) -> MetadataLog:
    return MetadataLog.open(HERE, files=files, config=CONFIG, now_ms=0)


def segment(base_offset: int) -> Path:
    return HERE / f"{base_offset:020d}.log"


def add_snapshot(files: FaultyFiles, snapshot_id: OffsetAndEpoch, *, suffix: str = "") -> None:
    path = HERE / (snapshot_name(snapshot_id) + suffix)
    files.names[path] = MemoryFile(make_snapshot(epoch=snapshot_id.epoch))


def untidy() -> FaultyFiles:
    """Return a directory that opens, and at the opening of which much is removed and mended.

    Segments begin at 12 and 18. Everything up to 20 is durable, and after that is a torn batch.
    """
    files = FaultyFiles()
    log = open_log(files)
    for batch in BATCHES:
        log.local_log.append(batch)
    log.local_log.flush()
    for snapshot_id in (OLDER, LATEST):
        writer = log.snapshots.create(snapshot_id)
        assert writer is not None
        writer.append(make_snapshot(epoch=snapshot_id.epoch))
        writer.freeze()
    assert log.delete_before_snapshot(LATEST, now_ms=0)
    log.local_log.update_files(now_ms=0)
    left = files.after_process_crash()
    left.names[segment(18)].content.extend(make_batch(20)[:-5])
    left.names[segment(20)] = MemoryFile()
    left.names[HERE / f"{5:020d}.index"] = MemoryFile(b"of no segment")
    left.names[HERE / f"{5:020d}.snapshot"] = MemoryFile(b"of no segment")
    add_snapshot(left, OffsetAndEpoch(17, 1), suffix=".part")
    del left.names[HERE / f"{18:020d}.index"]
    return left


def content(files: FaultyFiles) -> dict[str, bytes]:
    return {path.name: bytes(file.content) for path, file in files.names.items()}


def put(path: Path, data: bytes) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        files.names[path] = MemoryFile(data)

    return change


def lose(*names: str) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        for name in names:
            del files.names[HERE / name]

    return change


def flip(path: Path, position: int) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        files.names[path].content[position] ^= 4

    return change


def cut(path: Path, size: int) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        del files.names[path].content[size:]

    return change


def swap_batches(files: FaultyFiles) -> None:
    files.names[segment(18)].content[:] = BATCHES[19] + BATCHES[18]


def add_older_epoch(files: FaultyFiles) -> None:
    files.names[segment(18)].content[:] = BATCHES[18] + make_batch(19, epoch=0)


def add_rotten_snapshot_ahead(files: FaultyFiles) -> None:
    ahead = OffsetAndEpoch(50, 3)
    add_snapshot(files, ahead)
    del files.names[HERE / snapshot_name(ahead)].content[-3:]


LATEST_PATH = HERE / snapshot_name(LATEST)
REFUSALS: dict[str, Callable[[FaultyFiles], None]] = {
    "a flushed batch is damaged": flip(segment(18), 70),
    "a batch of an older segment is damaged": flip(segment(12), 70),
    "a flushed batch is cut": cut(segment(18), 100),
    "a flushed segment is empty": cut(segment(18), 0),
    "a segment is missing": lose(f"{12:020d}.log", f"{20:020d}.log"),
    "all segments are missing": lose(*(f"{base:020d}.log" for base in (12, 18, 20))),
    "batches are out of order": swap_batches,
    "an epoch goes back": add_older_epoch,
    "the flushed offset is damaged": flip(FLUSHED, 5),
    "the epochs are damaged": put(EPOCHS, b"0\n2\n1 0\n"),
    "the epochs do not increase": put(EPOCHS, b"0\n2\n1 5\n1 6\n"),
    "the epochs are of an unknown version": put(EPOCHS, b"1\n0\n"),
    "the epochs differ from flushed batches": put(EPOCHS, b"0\n2\n1 12\n2 15\n"),
    "the directory is another topic's": put(
        HERE / PARTITION_METADATA, encode_partition_metadata(b"x" * 16)
    ),
    "partition.metadata is damaged": put(HERE / PARTITION_METADATA, b"topic_id"),
    "partition.metadata is of an unknown version": put(
        HERE / PARTITION_METADATA, b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    ),
    "only a deleted snapshot covers the start": lose(LATEST_PATH.name),
    "no snapshot covers the start": lose(LATEST_PATH.name, snapshot_name(OLDER) + ".deleted"),
    "the latest snapshot is damaged": flip(LATEST_PATH, 100),
    "the latest snapshot is cut": cut(LATEST_PATH, 20),
    "a snapshot ahead of the log is damaged": add_rotten_snapshot_ahead,
}


def test_the_directory_opens_and_much_is_removed_and_mended() -> None:
    files = untidy()
    before = content(files)
    log = open_log(files)
    assert len(log.recovery.removed_files) >= 4
    assert len(log.recovery.lines()) >= 6
    assert set(before) - set(content(files))


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refused_start_changes_nothing(refusal: str) -> None:
    files = untidy()
    REFUSALS[refusal](files)
    before = content(files)
    with pytest.raises(StorageError):
        open_log(files)
    assert content(files) == before
    changes = {"write", "truncate", "rename", "remove", "create"}
    assert not [call for call in files.calls if call[0] in changes]


def test_the_advice_for_a_missing_snapshot_can_be_followed() -> None:
    files = untidy()
    lose(LATEST_PATH.name)(files)
    marked = HERE / (snapshot_name(OLDER) + ".deleted")
    with pytest.raises(MissingSnapshotError) as caught:
        open_log(files)
    assert f"rename {marked.name} to {snapshot_name(OLDER)}" in str(caught.value)
    files.rename(marked, HERE / snapshot_name(OLDER))
    log = open_log(files)
    assert log.snapshots.ids() == [OLDER]
    assert log.local_log.log_end_offset == 20
    found = [bytes(batch) for _, batch in split_batches(log.local_log.read(12, 10_000))]
    assert found == BATCHES[12:18]


def test_without_a_marked_one_the_advice_is_to_restore_the_snapshot() -> None:
    files = untidy()
    lose(LATEST_PATH.name, snapshot_name(OLDER) + ".deleted")(files)
    with pytest.raises(MissingSnapshotError, match="Restore the snapshot, or empty the directory"):
        open_log(files)

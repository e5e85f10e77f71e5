"""Metadata logs in memory and in directories, and their snapshots."""

from pathlib import Path

from tests.support.batch_maker import make_snapshot
from tests.support.faulty_files import FaultyFiles

from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshots import SnapshotStore
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

HERE = Path("/log")
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)


def open_log(files: FaultyFiles, config: LogConfig = CONFIG) -> MetadataLog:
    return MetadataLog.open(HERE, files=files, config=config, now_ms=0)


def open_in(directory: Path, config: LogConfig | None = None) -> MetadataLog:
    return MetadataLog.open(directory, files=RealFileSystem(), config=config, now_ms=0)


def add_snapshot(store: SnapshotStore, snapshot_id: OffsetAndEpoch) -> None:
    writer = store.create(snapshot_id)
    assert writer is not None
    writer.append(make_snapshot(epoch=snapshot_id.epoch))
    writer.freeze()

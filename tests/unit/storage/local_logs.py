"""Logs of partitions in memory, for tests."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support.batch_maker import make_batches
from tests.support.faulty_files import FaultyFiles

from kvorum.storage.log.batch_header import split_batches
from kvorum.storage.log.disk_pace import DiskThreads
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.log_loader import LoadedLog, LogCheckpoint, load_local_log
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles, encode_producer_snapshot
from kvorum.storage.log.segment import Segment
from kvorum.wire.records import RecordBatch, read_batches

HERE = Path("/data/topic-0")
CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100)
NEW = LogCheckpoint()
BATCHES = make_batches(0, 12) + make_batches(12, 8, epoch=3)
BASES = (0, 6, 12, 18)
CHANGES = {"write", "truncate", "rename", "remove", "create", "sync", "sync_directory"}


@dataclass
class Keeper:
    """Notes, among the calls to the disk, those that make bytes durable."""

    files: FaultyFiles

    def write(self, offset: int, *, durably: bool) -> None:
        self.files.calls.append(("keep durably" if durably else "keep", str(offset)))

    def close(self) -> None:
        self.files.calls.append(("close", ""))

    @property
    def kept(self) -> list[tuple[str, str]]:
        return [call for call in self.files.calls if call[0].startswith("keep")]


def loaded(
    files: FaultyFiles,
    checkpoint: LogCheckpoint = NEW,
    config: LogConfig = CONFIG,
    directory: Path = HERE,
    threads: DiskThreads | None = None,
) -> LoadedLog:
    return load_local_log(
        directory,
        files=files,
        config=config,
        checkpoint=checkpoint,
        recovery_point_keeper=Keeper(files),
        producer_snapshots=ProducerSnapshotFiles(
            directory, files, lambda: encode_producer_snapshot({})
        ),
        now_ms=0,
        threads=threads,
    )


def batches_in(segments: Iterable[Segment]) -> list[RecordBatch]:
    return list(read_batches(b"".join(one.file.read_at(0, one.size) for one in segments)))


def filled(files: FaultyFiles) -> LocalLog:
    log = loaded(files).log
    for batch in BATCHES:
        log.append(batch)
    return log


def clean(recovery_point: int, log_start_offset: int = 0) -> LogCheckpoint:
    return LogCheckpoint(
        recovery_point=recovery_point, log_start_offset=log_start_offset, had_clean_shutdown=True
    )


def crashed(recovery_point: int, log_start_offset: int = 0) -> LogCheckpoint:
    return LogCheckpoint(recovery_point=recovery_point, log_start_offset=log_start_offset)


def content(log: LocalLog) -> list[bytes]:
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        for header, batch in split_batches(log.read(offset, 10_000)):
            found.append(bytes(batch))
            offset = header.next_offset
    return found


def segment(base_offset: int) -> Path:
    return HERE / f"{base_offset:020d}.log"


def on_disk(files: FaultyFiles) -> dict[str, bytes]:
    return {path.name: bytes(file.content) for path, file in files.names.items()}


def closed(count: int = 20) -> FaultyFiles:
    """Return what a process left that wrote so many batches and closed the log."""
    files = FaultyFiles()
    log = loaded(files).log
    for batch in BATCHES[:count]:
        log.append(batch)
    log.close()
    return files.after_process_crash()

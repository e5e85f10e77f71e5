"""Flushing in one thread while another appends and reads."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.batch_maker import make_batch, make_batches
from tests.support.faulty_files import FaultyFiles, FaultyOpenFile
from tests.support.waiting import PATIENCE_S

from kvorum.storage.files import OpenFile, RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog

HERE = Path("/log")


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

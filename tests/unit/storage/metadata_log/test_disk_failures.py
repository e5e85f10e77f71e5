"""Disks of the metadata log: power cuts before any call, refusals, and bytes that rot."""

import errno
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

import pytest
from tests.support.batch_maker import make_batch, make_batches, make_snapshot
from tests.support.faulty_files import Fault, FaultyFiles, PowerCutError
from tests.unit.storage.local_logs import content
from tests.unit.storage.metadata_logs import HERE, add_snapshot, open_log

from kvorum.simulation.disk import SimulatedDisk
from kvorum.storage.errors import CorruptLogError, DiskError, DiskFullError, PoisonedError
from kvorum.storage.log.batch_header import read_header
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.retention import clean
from kvorum.storage.metadata_log.snapshots import SnapshotStore
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, retention_bytes=0)
DIRECTORY = Path("/data/log")
ID = OffsetAndEpoch(5, 1)
CONTENT = bytes(range(256)) * 40
FIRST = make_batch(0, epoch=3, values=(b"one", b"two"))


@dataclass
class Model:
    """The least and the most content of the log after a power cut right now.

    Batches by base offset. `must` is what a flush has confirmed; `allowed` are the contents the log
    may be a first part of: two while a truncation is under way.
    """

    start: int = 0
    must: list[bytes] = field(default_factory=list[bytes])
    allowed: list[list[bytes]] = field(default_factory=lambda: [[]])
    snapshot_is_enough: bool = False


Step = Generator[None]


class Scenario:
    """A log and its model, moving on together."""

    def __init__(self, files: FaultyFiles) -> None:
        self.files = files
        self.model = Model()
        self.log: MetadataLog | None = None

    def opened(self) -> MetadataLog:
        if self.log is None:
            self.log = open_log(self.files, CONFIG)
        return self.log

    def append(self, number: int, *, epoch: int) -> None:
        log = self.opened().local_log
        for _ in range(number):
            batch = make_batch(log.log_end_offset, epoch=epoch, values=(b"0123456789" * 4,))
            self.model.allowed[-1].append(batch)
            log.append(batch)

    def flush(self) -> None:
        self.opened().local_log.flush()
        self.model.must = list(self.model.allowed[-1])

    def truncate(self, offset: int) -> None:
        kept = self.model.allowed[-1][:offset]
        self.model.must = self.model.must[:offset]
        self.model.allowed.append(kept)
        self.opened().local_log.truncate_to(offset, now_ms=0)
        self.model.allowed = [kept]

    def snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        add_snapshot(self.opened().snapshots, snapshot_id)

    def close(self) -> None:
        self.opened().local_log.close()
        self.log = None
        self.model.must = list(self.model.allowed[-1])


def appending(scenario: Scenario) -> None:
    scenario.append(3, epoch=1)
    scenario.flush()
    scenario.append(6, epoch=1)
    scenario.append(2, epoch=3)
    scenario.flush()
    scenario.append(2, epoch=3)
    scenario.close()
    scenario.append(2, epoch=4)


def truncating(scenario: Scenario) -> None:
    scenario.append(8, epoch=1)
    scenario.append(3, epoch=2)
    scenario.flush()
    scenario.truncate(2)
    scenario.append(2, epoch=5)
    scenario.truncate(3)
    scenario.append(6, epoch=6)
    scenario.flush()
    scenario.truncate(0)
    scenario.append(1, epoch=7)
    scenario.close()


def cleaning(scenario: Scenario) -> None:
    scenario.append(12, epoch=1)
    scenario.flush()
    scenario.snapshot(OffsetAndEpoch(5, 1))
    scenario.snapshot(OffsetAndEpoch(9, 1))
    scenario.model.snapshot_is_enough = True
    clean(scenario.opened(), now_ms=0)
    scenario.append(3, epoch=2)
    scenario.flush()
    clean(scenario.opened(), now_ms=100_000)
    scenario.close()


def replacing_all(scenario: Scenario) -> None:
    scenario.append(12, epoch=1)
    scenario.flush()
    scenario.model.snapshot_is_enough = True
    scenario.snapshot(OffsetAndEpoch(50, 2))
    scenario.opened().truncate_to_latest_snapshot(now_ms=0)
    scenario.close()


def check(model: Model, files: FaultyFiles) -> None:
    """Open what is left, and compare it with the model."""
    log = open_log(files, CONFIG)
    found = {read_header(batch).base_offset: batch for batch in content(log.local_log)}
    assert any(
        all(index < len(allowed) and allowed[index] == batch for index, batch in found.items())
        for allowed in model.allowed
    )
    if log.log_end_offset < len(model.must):
        raise AssertionError(f"acknowledged up to {len(model.must)}, left {log.log_end_offset}")
    if log.log_start_offset > 0:
        assert model.snapshot_is_enough
        latest = log.snapshots.latest()
        assert latest is not None
        assert latest.offset >= log.log_start_offset
    log.local_log.append(make_batch(log.log_end_offset, epoch=9))
    log.local_log.close()


@pytest.mark.parametrize("script", [appending, truncating, cleaning, replacing_all])
def test_no_call_is_a_bad_moment_for_a_power_cut(script: Callable[[Scenario], None]) -> None:
    for calls in count():
        scenario = Scenario(FaultyFiles(calls_until_power_cut=calls))
        try:
            script(scenario)
        except PowerCutError:
            for seed in range(6):
                check(scenario.model, scenario.files.after_power_cut(Random(seed)))
            check(scenario.model, scenario.files.after_process_crash())
        else:
            assert calls > 100
            break


def test_a_finished_snapshot_survives_a_power_cut() -> None:
    disk = SimulatedDisk(Random(1))
    files = disk.mount()
    files.make_directory(DIRECTORY)
    files.sync_directory(DIRECTORY.parent)
    writer = SnapshotStore(DIRECTORY, files).create(ID)
    assert writer is not None
    writer.append(CONTENT)
    writer.freeze()
    disk.crash(is_power_cut=True)
    store = SnapshotStore(DIRECTORY, disk.mount())
    store.load(log_start_offset=0)
    reader = store.open(ID)
    assert reader is not None
    assert reader.read_at(0, len(CONTENT) + 1) == CONTENT


@pytest.mark.parametrize("written", [0, 1, 60, 80])
def test_a_full_disk_leaves_the_log_as_it_was(files: FaultyFiles, written: int) -> None:
    log = open_log(files)
    batches = make_batches(0, 3)
    log.local_log.append(b"".join(batches))
    files.faults = [Fault("write", 1, error=errno.ENOSPC, written=written)]
    with pytest.raises(DiskFullError) as caught:
        log.local_log.append(make_batch(3))
    assert caught.value.errno == errno.ENOSPC
    assert "Free some space" in str(caught.value)
    assert caught.value.file == HERE / f"{0:020d}.log"
    assert content(log.local_log) == batches
    assert len(files.names[HERE / f"{0:020d}.log"].content) == sum(map(len, batches))
    log.local_log.append(make_batch(3, epoch=2))
    log.local_log.close()
    assert content(open_log(files).local_log) == [*batches, make_batch(3, epoch=2)]


def test_a_write_that_cannot_be_taken_back_poisons_the_log(files: FaultyFiles) -> None:
    log = open_log(files).local_log
    log.append(make_batch(0))
    log.flush()
    files.faults = [Fault("write", 1, written=30), Fault("truncate", 1)]
    with pytest.raises(DiskError, match="and so did taking it back"):
        log.append(make_batch(1))
    for use in (
        lambda: log.append(make_batch(1)),
        lambda: log.read(0, 100),
        log.flush,
        lambda: log.truncate_to(0, now_ms=0),
    ):
        with pytest.raises(PoisonedError, match="cannot be used any more"):
            use()
    log.close()
    again = open_log(files.after_process_crash())
    assert content(again.local_log) == [make_batch(0)]
    assert again.recovery.torn_tail is not None


def test_a_sync_that_fails_poisons_the_log_and_is_not_tried_again(files: FaultyFiles) -> None:
    log = open_log(files).local_log
    log.append(make_batch(0))
    log.update_files(now_ms=0)
    files.faults = [Fault("sync", 1)]
    with pytest.raises(DiskError, match="syncing failed"):
        log.flush()
    assert log.recovery_point == 0
    with pytest.raises(PoisonedError):
        log.flush()
    before = len(files.calls)
    log.close()
    assert not [call for call in files.calls[before:] if call[0] in {"sync", "write"}]


def failure_while_working(log: MetadataLog) -> DiskError | None:
    """Append, flush, truncate and close; return what went wrong, if anything did."""
    try:
        for batch in make_batches(5, 10, epoch=2):
            log.local_log.append(batch)
        log.local_log.flush()
        log.local_log.truncate_to(6, now_ms=0)
        log.local_log.close()
    except DiskError as error:
        return error
    return None


@pytest.mark.parametrize("number", range(1, 12))
@pytest.mark.parametrize("operation", ["write", "sync", "rename", "create", "open", "remove"])
def test_after_any_failure_the_log_says_so_and_opens_again(operation: str, number: int) -> None:
    files = FaultyFiles()
    log = open_log(files)
    first = make_batches(0, 5)
    log.local_log.append(b"".join(first))
    log.local_log.flush()
    files.faults = [Fault(operation, number, written=7)]
    error = failure_while_working(log)
    is_due = files.faults[0].number <= 0
    assert is_due == (error is not None and "injected failure" in str(error))
    files.faults = []
    survived = content(open_log(files.after_process_crash()).local_log)
    assert survived[:5] == first
    assert survived == (first + make_batches(5, 10, epoch=2))[: len(survived)]
    if error is None:
        assert len(survived) == 6


@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename"])
def test_a_small_file_that_cannot_be_replaced_stays_as_it_was(operation: str) -> None:
    files = FaultyFiles()
    file = QuorumStateFile(HERE, files)
    old = QuorumState(leader_epoch=3, voted_id=1)
    file.write(old, version=1)
    files.faults = [Fault(operation, 1, error=errno.ENOSPC)]
    with pytest.raises(DiskFullError):
        file.write(QuorumState(leader_epoch=4), version=1)
    assert file.read() == old
    assert [path.name for path in files.names] == ["quorum-state"]


@pytest.mark.parametrize("operation", ["write", "sync", "rename"])
def test_a_snapshot_that_fails_never_gets_its_final_name(operation: str) -> None:
    files = FaultyFiles()
    log = open_log(files)
    writer = log.snapshots.create(OffsetAndEpoch(5, 1))
    assert writer is not None
    files.faults = [Fault(operation, 1, written=10)]

    def write() -> None:
        writer.append(make_snapshot(epoch=1))
        writer.freeze()

    with pytest.raises(DiskError):
        write()
    with pytest.raises(PoisonedError):
        writer.append(b"more")
    assert log.snapshots.ids() == []
    writer.abort()
    assert not [path for path in files.names if ".checkpoint" in path.name]
    # The log itself is none the worse.
    log.local_log.append(make_batch(0))
    assert log.local_log.flush() == 1


def _log() -> tuple[MetadataLog, bytearray]:
    files = FaultyFiles()
    log = open_log(files, LogConfig())
    log.local_log.append(FIRST + make_batch(2, epoch=3) + make_batch(3, epoch=4))
    log.local_log.flush()
    return log, files.names[HERE / "00000000000000000000.log"].content


@pytest.mark.parametrize("byte", range(len(FIRST)))
def test_a_flipped_bit_is_noticed_wherever_it_is(byte: int) -> None:
    log, content = _log()
    whole = bytes(log.local_log.read(0, 1_000))
    content[byte] ^= 0x10
    with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
        log.local_log.read(0, 1_000)
    assert whole.startswith(FIRST)


@pytest.mark.parametrize("bit", range(64))
def test_no_flipped_bit_of_an_offset_makes_a_record_disappear(bit: int) -> None:
    log, content = _log()
    assert bytes(log.local_log.read(0, 1_000, end_offset=2)) == FIRST
    assert not log.local_log.read(0, 1_000, end_offset=1)
    content[bit // 8] ^= 0x80 >> bit % 8
    with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
        log.local_log.read(0, 1_000, end_offset=2)


def test_a_later_batch_that_says_another_offset_is_not_a_record() -> None:
    log, content = _log()
    content[len(FIRST) + 7] ^= 1
    with pytest.raises(CorruptLogError, match="offset 3 and epoch 3 lies where 2"):
        log.local_log.read(0, 1_000)


def test_a_batch_that_says_another_epoch_is_not_a_record() -> None:
    log, content = _log()
    content[15] ^= 1
    with pytest.raises(CorruptLogError, match="lies where 0, of epoch 3"):
        log.local_log.read(0, 1_000)


def test_every_batch_reads_as_it_was_written() -> None:
    log, _ = _log()
    assert len(log.local_log.read(0, 1_000)) == log.local_log.size_bytes
    assert bytes(log.local_log.read(1, 1)) == FIRST


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("bit", range(64))
def test_no_batch_is_taken_for_the_one_after_it(bit: int, *, is_indexed: bool) -> None:
    files = FaultyFiles()
    log = open_log(files, LogConfig(index_interval_bytes=0 if is_indexed else 4096)).local_log
    for offset in range(4):
        log.append(make_batch(offset, epoch=3))
    content = files.names[HERE / "00000000000000000000.log"].content
    size = len(content) // 4
    content[2 * size + bit // 8] ^= 0x80 >> bit % 8
    with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
        log.read(2, 1)
    if not is_indexed:
        with pytest.raises(CorruptLogError, match=r"00000000000000000000\.log"):
            log.read(3, 1)

"""The simulated disk: what it keeps, loses and refuses, and a log that is read behind its back."""

import errno
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import NoReturn

import pytest
from tests.support.batch_maker import make_batch, make_snapshot

from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_faults import CrashedError, FileKind
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.properties.log_scan import LogScan
from kvorum.storage.errors import DiskError, DiskFullError, PoisonedError
from kvorum.storage.files import FileSystem, read_whole, replace_durably
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

HERE = Path("/node")
CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=100)
SCANNED = Path("/node/log")
SMALL_SEGMENTS = LogConfig(segment_bytes=300, retention_bytes=0)


def _disk(seed: int = 1) -> tuple[SimulatedDisk, list[FaultKind]]:
    """Return a disk, and the faults that it reports."""
    faults: list[FaultKind] = []

    def note(fault: FaultKind, text: str) -> None:
        assert text
        faults.append(fault)

    disk = SimulatedDisk(Random(seed), note=note)
    disk.make_directory(HERE)
    return disk, faults


def _write(files: FileSystem, name: str, data: bytes, *, is_synced: bool) -> None:
    handle = files.open(HERE / name, create=True)
    handle.write_at(handle.size(), data)
    if is_synced:
        handle.sync()
        files.sync_directory(HERE)
    handle.close()


def test_it_does_what_a_file_system_does() -> None:
    disk, _ = _disk()
    files = disk.mount()
    _write(files, "a", b"12345", is_synced=False)
    with pytest.raises(FileExistsError):
        files.create_exclusively(HERE / "a")
    with pytest.raises(FileNotFoundError):
        files.open(HERE / "b")
    with pytest.raises(FileNotFoundError):
        files.open(Path("/elsewhere/b"), create=True)
    handle = files.open(HERE / "a")
    handle.write_at(8, b"9")
    assert handle.read_at(0, 100) == b"12345\0\0\x009"
    handle.truncate(3)
    assert (handle.size(), handle.read_at(1, 1)) == (3, b"2")
    files.rename(HERE / "a", HERE / "c")
    assert (files.exists(HERE / "a"), files.exists(HERE / "c")) == (False, True)
    files.make_directory(HERE / "deeper" / "still")
    assert files.list_names(HERE) == ["c", "deeper"]
    files.make_read_only(HERE / "c")
    with pytest.raises(PermissionError):
        files.open(HERE / "c")
    assert files.open(HERE / "c", read_only=True).size() == 3
    files.remove(HERE / "c")
    files.remove(HERE / "c")
    assert not files.exists(HERE / "c")


def test_a_closed_handle_is_of_no_use() -> None:
    disk, _ = _disk()
    handle = disk.mount().open(HERE / "a", create=True)
    handle.close()
    handle.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        handle.size()


def test_a_lock_is_held_until_its_process_is_gone() -> None:
    disk, _ = _disk()
    files = disk.mount()
    held = files.lock(HERE / ".lock")
    assert held is not None
    assert files.lock(HERE / ".lock") is None
    held.release()
    assert files.lock(HERE / ".lock") is not None
    assert disk.mount().lock(HERE / ".lock") is not None


def test_without_a_power_cut_everything_written_stays() -> None:
    disk, faults = _disk()
    _write(disk.mount(), "x.log", b"a" * 10_000, is_synced=False)
    disk.crash(is_power_cut=False)
    assert read_whole(disk.mount(), HERE / "x.log") == b"a" * 10_000
    assert faults == []


def test_what_a_process_left_unsynced_may_still_be_lost_by_a_later_power_cut() -> None:
    losses = 0
    for seed in range(40):
        disk, _ = _disk(seed)
        _write(disk.mount(), "x.log", b"a", is_synced=False)
        disk.crash(is_power_cut=False)
        disk.crash(is_power_cut=True)
        losses += not disk.mount().exists(HERE / "x.log")
    assert 0 < losses < 40


@pytest.mark.parametrize("is_scattering", [False, True])
def test_a_power_cut_keeps_what_was_synced_and_some_blocks_of_the_rest(
    *, is_scattering: bool
) -> None:
    kinds: set[FaultKind] = set()
    sizes: set[int] = set()
    holes = 0
    for seed in range(200):
        disk, faults = _disk(seed)
        files = disk.mount()
        _write(files, "x.log", b"a" * 6_000, is_synced=True)
        for number in range(5):
            _write(files, "x.log", bytes([98 + number]) * 3_000, is_synced=False)
        written = read_whole(files, HERE / "x.log")
        disk.crash(is_power_cut=True, is_scattering=is_scattering)
        left = read_whole(disk.mount(), HERE / "x.log")
        assert left[:6_000] == b"a" * 6_000
        assert len(left) <= len(written)
        assert all(byte in {0, written[place]} for place, byte in enumerate(left))
        holes += b"\0" in left.rstrip(b"\0")
        sizes.add(len(left))
        kinds.update(faults)
    assert kinds >= {FaultKind.LOST_TAIL, FaultKind.TORN_WRITE}
    assert {6_000, 21_000} < sizes
    assert any(size % 512 == 0 and size % 4096 for size in sizes)
    assert (holes > 0) == is_scattering


def test_an_overwritten_sector_is_the_old_one_or_the_new_one() -> None:
    found: set[bytes] = set()
    for seed in range(60):
        disk, _ = _disk(seed)
        files = disk.mount()
        _write(files, "x", b"old", is_synced=True)
        files.open(HERE / "x").write_at(0, b"new")
        disk.crash(is_power_cut=True)
        found.add(read_whole(disk.mount(), HERE / "x"))
    assert found == {b"old", b"new"}


def test_a_truncation_that_was_not_synced_may_not_have_happened() -> None:
    found: set[bytes] = set()
    for seed in range(60):
        disk, _ = _disk(seed)
        files = disk.mount()
        _write(files, "x", b"12345", is_synced=True)
        files.open(HERE / "x").truncate(2)
        disk.crash(is_power_cut=True)
        found.add(read_whole(disk.mount(), HERE / "x"))
    assert found == {b"12", b"12345"}


def test_names_are_lost_and_reordered_until_the_directory_is_synced() -> None:
    found: set[tuple[str, ...]] = set()
    for seed in range(200):
        disk, faults = _disk(seed)
        files = disk.mount()
        _write(files, "a", b"1", is_synced=True)
        files.rename(HERE / "a", HERE / "b")
        _write(files, "c", b"2", is_synced=False)
        disk.crash(is_power_cut=True)
        names = tuple(disk.mount().list_names(HERE))
        assert (FaultKind.LOST_NAME in faults) == (names != ("b", "c"))
        found.add(names)
    assert found == {("a",), ("a", "c"), ("b",), ("b", "c")}


def test_a_file_replaced_durably_is_the_old_one_or_the_new_one_at_every_call() -> None:
    for seed in range(20):
        for call in range(10):
            disk, _ = _disk(seed)
            replace_durably(disk.mount(), HERE / "quorum-state", b"old" * 1_000)
            _crash_at(disk, call)
            is_done = False
            with suppress(CrashedError):
                replace_durably(disk.mount(), HERE / "quorum-state", b"new" * 2_000)
                is_done = True
            disk.before_call = _go_on
            disk.crash(is_power_cut=True)
            left = read_whole(disk.mount(), HERE / "quorum-state")
            assert left in ({b"new" * 2_000} if is_done else {b"old" * 1_000, b"new" * 2_000})


def _contents(disk: SimulatedDisk) -> dict[str, bytes]:
    """Return the bytes of every file below `HERE` as written, by path."""
    names = disk.directory_at(HERE).names
    return {f"{HERE}/{name}": bytes(file.content) for name, file in sorted(names.items())}


def _go_on(_operation: str, _path: Path) -> None:
    """Let every call be made."""


def _crash_at(disk: SimulatedDisk, call: int) -> None:
    calls = count()

    def before(operation: str, path: Path) -> None:
        assert operation
        assert path
        if next(calls) >= call:
            raise CrashedError

    disk.before_call = before


def test_a_crashed_process_cannot_touch_the_disk_any_more() -> None:
    disk, _ = _disk()
    files = disk.mount()
    handle = files.open(HERE / "x", create=True)
    _crash_at(disk, 0)
    with pytest.raises(CrashedError):
        handle.write_at(0, b"1")
    disk.before_call = _go_on
    with pytest.raises(CrashedError):
        files.remove(HERE / "x")
    handle.close()
    assert disk.mount().exists(HERE / "x")


def test_a_log_keeps_what_it_flushed_whatever_the_disk_loses() -> None:
    for seed in range(150):
        disk, _ = _disk(seed)
        random = Random(seed)
        disk.make_directory(HERE / "log")
        replies: list[int] = []
        _crash_at(disk, random.randrange(1, 120))
        with suppress(CrashedError):
            _run_log(disk, replies, random)
        disk.before_call = _go_on
        disk.crash(is_power_cut=True)
        again = MetadataLog.open(HERE / "log", files=disk.mount(), config=CONFIG, now_ms=0)
        assert again.log_end_offset >= max(replies, default=0)


def _run_log(disk: SimulatedDisk, replies: list[int], random: Random) -> NoReturn:
    log = MetadataLog.open(HERE / "log", files=disk.mount(), config=CONFIG, now_ms=0)
    while True:
        for _ in range(random.randrange(1, 4)):
            values = (b"x" * random.randrange(9_000),)
            log.local_log.append(make_batch(log.log_end_offset, epoch=1, values=values))
        if random.random() < 0.7:
            replies.append(log.local_log.flush())
        if random.random() < 0.1 and replies:
            writer = log.create_snapshot(OffsetAndEpoch(replies[-1], 1), high_watermark=replies[-1])
            if writer is not None:
                writer.append(make_snapshot(epoch=1))
                writer.freeze()


def test_a_full_disk_refuses_and_takes_again() -> None:
    disk, faults = _disk()
    log = MetadataLog.open(HERE / "log", files=disk.mount(), config=CONFIG, now_ms=0).local_log
    log.append(make_batch(0, epoch=1))
    disk.refuse_writes([FileKind.LOG])
    with pytest.raises(DiskFullError):
        log.append(make_batch(log.log_end_offset, epoch=1))
    disk.accept_writes()
    log.append(make_batch(log.log_end_offset, epoch=1))
    assert faults == [FaultKind.REFUSED_WRITE]


def test_only_so_many_writes_of_one_kind_are_refused() -> None:
    disk, _ = _disk()
    disk.refuse_writes([FileKind.QUORUM_STATE], error=errno.EIO, calls=1)
    file = QuorumStateFile(HERE, disk.mount())
    with pytest.raises(DiskError, match="Input/output error"):
        file.write(QuorumState(leader_epoch=1), version=1)
    file.write(QuorumState(leader_epoch=2), version=1)
    stored = file.read()
    assert stored is not None
    assert stored.leader_epoch == 2


def test_after_a_failed_sync_nothing_is_durable_though_the_next_sync_says_so() -> None:
    disk, faults = _disk()
    log = MetadataLog.open(HERE / "log", files=disk.mount(), config=CONFIG, now_ms=0).local_log
    log.append(make_batch(0, epoch=1))
    end = log.flush()
    log.append(make_batch(end, epoch=1))
    disk.fail_next_sync([FileKind.LOG])
    with pytest.raises(DiskError):
        log.flush()
    with pytest.raises(PoisonedError):
        log.flush()
    disk.inspect().open(HERE / "log" / "00000000000000000000.log").sync()
    disk.crash(is_power_cut=False)
    again = MetadataLog.open(HERE / "log", files=disk.mount(), config=CONFIG, now_ms=0).local_log
    assert again.log_end_offset == end
    assert faults[0] is FaultKind.FAILED_SYNC


def test_a_flipped_bit_is_one_bit_of_a_file_of_that_kind() -> None:
    disk, faults = _disk()
    QuorumStateFile(HERE, disk.mount()).write(QuorumState(leader_epoch=1), version=1)
    before = _contents(disk)
    assert disk.flip_bit(FileKind.SNAPSHOT) is None
    flipped = disk.flip_bit(FileKind.QUORUM_STATE)
    assert flipped is not None
    old, new = before[str(flipped.path)], _contents(disk)[str(flipped.path)]
    assert [a ^ b for a, b in zip(old, new, strict=True) if a != b] == [1 << flipped.bit]
    assert disk.flip_bit(FileKind.QUORUM_STATE, is_allowed=lambda _path, _data: False) is None
    assert _contents(disk)[str(flipped.path)] == new
    assert faults == [FaultKind.BIT_FLIP]


def test_a_wiped_disk_is_empty() -> None:
    disk, faults = _disk()
    _write(disk.mount(), "x", b"1", is_synced=True)
    disk.crash(is_power_cut=False)
    disk.wipe()
    assert not disk.mount().exists(HERE)
    assert faults == [FaultKind.WIPE]


def test_a_copy_goes_its_own_way() -> None:
    disk, _ = _disk()
    _write(disk.mount(), "x", b"1", is_synced=True)
    other = disk.copy(Random(1))
    _write(other.mount(), "x", b"2", is_synced=True)
    assert _contents(disk) == {"/node/x": b"1"}
    assert _contents(other) == {"/node/x": b"12"}


def test_the_same_seed_leaves_the_same_bytes() -> None:
    def left(seed: int) -> dict[str, bytes]:
        disk, _ = _disk(seed)
        files = disk.mount()
        for number in range(20):
            _write(files, f"{number % 3}.log", b"abc" * 1_000, is_synced=number % 4 == 0)
        disk.crash(is_power_cut=True)
        return _contents(disk)

    assert left(5) == left(5)
    assert len({tuple(left(seed).items()) for seed in range(10)}) > 5


class Scanned:
    """A log, its disk, and a scan of it."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(Random(0))
        self.log = MetadataLog.open(
            SCANNED, files=self.disk.mount(), config=SMALL_SEGMENTS, now_ms=0
        )
        self.scan = LogScan(self.disk, SCANNED)

    def append(self, count: int = 1, *, epoch: int = 1, flush: bool = True) -> None:
        log = self.log.local_log
        for _ in range(count):
            log.append(make_batch(log.log_end_offset, epoch=epoch, values=(b"v" * 30,)))
            if flush:
                log.flush()

    def offsets(self) -> list[int]:
        return [batch.base_offset for batch in self.scan.batches_from(0)]


@pytest.fixture
def one() -> Scanned:
    return Scanned()


def test_what_is_appended_is_new_once_over_many_segments(one: Scanned) -> None:
    assert one.scan.refresh() is None
    for number in range(12):
        one.append()
        assert one.scan.refresh() == number
        assert one.scan.refresh() is None
    assert one.offsets() == list(range(12))
    assert one.scan.end_offset == one.scan.durable_end_offset == 12
    found = one.scan.batch_holding(7)
    assert found is not None
    assert one.scan.bytes_of(found) == make_batch(7, values=(b"v" * 30,))
    assert one.scan.batch_holding(12) is None


def test_what_was_not_synced_is_not_durable(one: Scanned) -> None:
    one.append()
    one.append(flush=False)
    one.scan.refresh()
    assert (one.scan.end_offset, one.scan.durable_end_offset) == (2, 1)
    one.log.local_log.flush()
    assert one.scan.durable_end_offset == 2


def test_a_truncation_changes_everything_after_it(one: Scanned) -> None:
    one.append(9)
    one.scan.refresh()
    one.log.local_log.truncate_to(3, now_ms=0)
    one.append(epoch=2)
    assert one.scan.refresh() == 3
    assert one.offsets() == [0, 1, 2, 3]
    assert one.scan.end_offset == 4


def test_what_goes_at_the_front_is_not_a_change(one: Scanned) -> None:
    one.append(9)
    one.scan.refresh()
    writer = one.log.create_snapshot(OffsetAndEpoch(8, 1), high_watermark=9)
    assert writer is not None
    writer.append(make_snapshot(epoch=1))
    writer.freeze()
    assert one.log.delete_before_snapshot(OffsetAndEpoch(8, 1), now_ms=0)
    one.log.local_log.update_files(now_ms=0)
    assert one.scan.refresh() is None
    assert one.scan.start_offset > 0
    assert one.offsets()[-1] == 8


def test_a_log_that_makes_way_for_a_snapshot_begins_after_it(one: Scanned) -> None:
    one.append(9)
    one.scan.refresh()
    one.log.local_log.truncate_fully_and_start_at(5, now_ms=0)
    assert one.scan.refresh() == 5
    assert (one.scan.start_offset, one.scan.end_offset) == (5, 5)


def test_what_a_crashed_process_had_appended_is_new(one: Scanned) -> None:
    one.append()
    one.scan.refresh()
    one.append()
    one.disk.crash(is_power_cut=True)
    assert one.scan.refresh() == 1
    assert one.offsets() == [0, 1]


def test_a_flipped_bit_ends_the_log(one: Scanned) -> None:
    one.append(3)
    one.scan.refresh()
    one.disk.directory_at(SCANNED).names["00000000000000000000.log"].flip(150, 1)
    assert one.scan.refresh() == 1
    assert one.offsets() == [0]


def test_snapshots_count_while_no_log_is_there() -> None:
    disk = SimulatedDisk(Random(0))
    files = disk.mount()
    disk.make_directory(SCANNED)
    for name in ("00000000000000000009-0000000001.checkpoint", "x"):
        files.create_exclusively(SCANNED / name)
    scan = LogScan(disk, SCANNED)
    scan.refresh()
    assert (scan.end_offset, scan.kept_end_offset) == (0, 9)


@pytest.mark.parametrize("bit", range(64))
def test_an_append_is_known_by_its_place_though_an_offset_has_rotted(bit: int) -> None:
    one = Scanned()
    one.append(3)
    one.scan.refresh()
    marks = one.scan.marks()
    one.append()
    one.disk.directory_at(SCANNED).names["00000000000000000000.log"].flip(bit // 8, bit % 8)
    one.scan.refresh()
    assert [batch.base_offset for batch in one.scan.batches_behind(marks)] == [3]

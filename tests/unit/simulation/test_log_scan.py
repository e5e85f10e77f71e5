"""Reading a log from the disk behind its back: whatever changes is looked at again."""

from pathlib import Path
from random import Random

import pytest
from tests.support.batch_maker import make_batch, make_snapshot

from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.properties.log_scan import LogScan
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

HERE = Path("/node/log")
CONFIG = LogConfig(segment_bytes=300, retention_bytes=0)


class Scanned:
    """A log, its disk, and a scan of it."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk(Random(0))
        self.log = MetadataLog.open(HERE, files=self.disk.mount(), config=CONFIG, now_ms=0)
        self.scan = LogScan(self.disk, HERE)

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
    one.disk.directory_at(HERE).names["00000000000000000000.log"].flip(150, 1)
    assert one.scan.refresh() == 1
    assert one.offsets() == [0]


def test_snapshots_count_while_no_log_is_there() -> None:
    disk = SimulatedDisk(Random(0))
    files = disk.mount()
    disk.make_directory(HERE)
    for name in ("00000000000000000009-0000000001.checkpoint", "x"):
        files.create_exclusively(HERE / name)
    scan = LogScan(disk, HERE)
    scan.refresh()
    assert (scan.end_offset, scan.kept_end_offset) == (0, 9)


@pytest.mark.parametrize("bit", range(64))
def test_an_append_is_known_by_its_place_though_an_offset_has_rotted(bit: int) -> None:
    one = Scanned()
    one.append(3)
    one.scan.refresh()
    marks = one.scan.marks()
    one.append()
    one.disk.directory_at(HERE).names["00000000000000000000.log"].flip(bit // 8, bit % 8)
    one.scan.refresh()
    assert [batch.base_offset for batch in one.scan.batches_behind(marks)] == [3]

"""A snapshot under its final name is whole, whatever happens to the power."""

from pathlib import Path
from random import Random

from kvorum.simulation.disk import SimulatedDisk
from kvorum.storage.metadata_log.snapshots import SnapshotStore
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

DIRECTORY = Path("/data/log")
ID = OffsetAndEpoch(5, 1)
CONTENT = bytes(range(256)) * 40


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

"""A disk that refuses: what is left usable, what is poisoned, and what the error says."""

import errno

import pytest
from tests.support.batch_maker import make_batch, make_batches, make_snapshot
from tests.support.faulty_files import Fault, FaultyFiles
from tests.unit.storage.local_logs import content
from tests.unit.storage.metadata_logs import HERE, open_log

from kvorum.storage.errors import DiskError, DiskFullError, PoisonedError
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


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

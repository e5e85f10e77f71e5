"""The log of a partition: written, read, cut, made durable, and poisoned."""

from contextlib import suppress
from random import Random

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import Fault, FaultyFiles, PowerCutError
from tests.unit.storage.local_logs import (
    BASES,
    BATCHES,
    Keeper,
    clean,
    content,
    crashed,
    filled,
    loaded,
    segment,
)

from kvorum.storage.errors import (
    DiskError,
    InvalidAppendError,
    InvalidTruncationError,
    OffsetOutOfRangeError,
    PoisonedError,
)
from kvorum.storage.log.epochs import LEADER_EPOCH_CHECKPOINT


def test_what_was_appended_is_read_across_segments(files: FaultyFiles) -> None:
    log = filled(files)
    assert content(log) == BATCHES
    assert [path.name for path in sorted(files.names) if path.suffix == ".log"] == [
        segment(base).name for base in BASES
    ]
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 20, 0)
    assert log.epoch_starts == ((1, 0), (3, 12))


def test_what_does_not_continue_the_log_is_refused() -> None:
    log = filled(FaultyFiles())
    for batch in (make_batch(21), make_batch(19), make_batch(20, epoch=2), b""):
        with pytest.raises(InvalidAppendError):
            log.append(batch)
    for offset in (-1, 21):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, 100)
    assert content(log) == BATCHES


def test_a_flush_moves_the_recovery_point_and_has_it_kept(files: FaultyFiles) -> None:
    log = filled(files)
    log.update_files(now_ms=0)
    files.calls.clear()
    assert log.flush() == log.recovery_point == 20
    assert files.calls == [("sync", segment(18).name), ("keep", "20")]
    assert log.flush() == 20
    assert len(files.calls) == 2
    log.close()
    assert Keeper(files).kept[-1] == ("keep durably", "20")


def test_a_flush_leaves_the_directory_of_a_closed_log_alone(files: FaultyFiles) -> None:
    """Another directory may have its name, or none: its topic was deleted or its replica moved."""
    log = filled(files)
    log.abandon()
    files.calls.clear()
    assert log.flush() == log.recovery_point == 0
    assert files.calls == []


def test_full_truncation_starts_again_at_any_offset(files: FaultyFiles) -> None:
    log = filled(files)
    log.truncate_fully_and_start_at(100, now_ms=0)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (100, 100, 100)
    assert log.epoch_starts == ()
    log.append(make_batch(100, epoch=4))
    with pytest.raises(InvalidTruncationError):
        log.truncate_to(99, now_ms=0)
    again = loaded(files.after_process_crash(), crashed(100, 100)).log
    assert content(again) == [make_batch(100, epoch=4)]


@pytest.mark.parametrize("start", range(1, 21))
def test_giving_up_old_records_removes_whole_segments_and_older_epochs(start: int) -> None:
    files = FaultyFiles()
    log = filled(files)
    removed = log.increment_log_start_offset(start, now_ms=0)
    assert removed == len([base for base in BASES[1:] if base <= start])
    assert log.log_start_offset == start
    assert log.epoch_starts[0] == (1 if start < 12 else 3, start)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(start - 1, 100)
    log.close()
    again = loaded(files.after_process_crash(), clean(20, start)).log
    assert (again.log_start_offset, again.log_end_offset) == (start, 20)
    # As in Kafka, an epoch without records is forgotten.
    assert again.epoch_starts == (log.epoch_starts if start < 20 else ())


def test_an_epoch_begins_without_a_wait_and_is_stored_before_its_records_are_durable() -> None:
    files = FaultyFiles()
    log = filled(files)
    log.flush()
    files.calls.clear()
    log.assign_epoch(5)
    assert files.calls == []
    log.append(make_batch(20, epoch=5))
    assert {operation for operation, _ in files.calls} == {"write"}
    files.calls.clear()
    log.flush()
    stored, kept = (LEADER_EPOCH_CHECKPOINT + ".tmp", ("keep", "21"))
    assert files.calls.index(("rename", stored)) < files.calls.index(kept)
    again = loaded(files.after_power_cut(Random(1)), crashed(21)).log
    assert again.epoch_starts == ((1, 0), (3, 12), (5, 20))


@pytest.mark.parametrize("start", [3, 6, 13, 20])
def test_giving_up_old_records_waits_for_no_disk(files: FaultyFiles, start: int) -> None:
    log = filled(files)
    files.calls.clear()
    count = log.increment_log_start_offset(start, now_ms=0)
    assert (files.calls, log.first_stored_offset) == ([], 0)
    assert log.has_files_to_update(now_ms=0)
    log.update_files(now_ms=0)
    synced = [name for operation, name in files.calls if operation == "sync_directory"]
    # One for each segment, the oldest first, and one for the file of the epochs.
    assert synced == [segment(0).parent.name] * (count + 1)
    assert log.first_stored_offset == BASES[count]
    assert not log.has_files_to_update(now_ms=0)


@pytest.mark.parametrize("seed", range(20))
def test_a_flush_removes_the_files_of_deleted_segments_before_what_follows_counts_as_durable(
    files: FaultyFiles, seed: int
) -> None:
    log = filled(files)
    log.increment_log_start_offset(13, now_ms=0)
    log.flush()
    assert content(loaded(files.after_power_cut(Random(seed)), crashed(20)).log) == BATCHES[12:]


@pytest.mark.parametrize("call", range(30))
def test_a_power_cut_during_the_removal_of_files_leaves_no_gap(call: int) -> None:
    files = FaultyFiles()
    log = filled(files)
    log.flush()
    log.increment_log_start_offset(19, now_ms=0)
    files.calls_until_power_cut = call
    with suppress(PowerCutError):
        log.update_files(now_ms=0)
    again = loaded(files.after_power_cut(Random(call)), crashed(20)).log
    assert content(again) == BATCHES[again.log_start_offset :]


def test_a_log_that_begins_where_a_deleted_segment_began_is_a_new_one(files: FaultyFiles) -> None:
    log = filled(files)
    log.increment_log_start_offset(13, now_ms=0)
    log.truncate_fully_and_start_at(6, now_ms=0)
    log.append(make_batch(6, epoch=4))
    assert content(log) == [make_batch(6, epoch=4)]
    log.close()
    assert content(loaded(files.after_process_crash(), clean(7, 6)).log) == [make_batch(6, epoch=4)]


def test_a_sync_that_fails_poisons_the_log(files: FaultyFiles) -> None:
    log = filled(files)
    files.faults = [Fault("sync", 1)]
    with pytest.raises(DiskError):
        log.flush()
    assert log.recovery_point == 0
    for use in (
        log.flush,
        lambda: log.append(make_batch(20, epoch=3)),
        lambda: log.read(0, 100),
        lambda: log.truncate_to(0, now_ms=0),
        lambda: log.truncate_fully_and_start_at(0, now_ms=0),
        lambda: log.increment_log_start_offset(3, now_ms=0),
    ):
        with pytest.raises(PoisonedError, match="cannot be used any more"):
            use()
    before = len(files.calls)
    log.close()
    assert [call for call in files.calls[before:] if call[0] != "close"] == []

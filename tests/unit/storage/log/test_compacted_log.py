"""Compacted logs: gaps between batches, and a replacement of segments that is cut off anywhere."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles, MemoryFile, PowerCutError
from tests.unit.storage.local_logs import CONFIG, HERE, clean, content, crashed, loaded

from kvorum.storage.cleaner.cleaner import Cleaner, Pass
from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.errors import CleaningAbortedError, CorruptLogError, InvalidAppendError
from kvorum.storage.log.batch_header import read_header
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.log_loader import LoadedLog, LogCheckpoint, finish_interrupted_swap
from kvorum.wire.records import BatchOptions, RecordData, build_batch, read_batches

GAPS = replace(CONFIG, may_have_gaps=True)
SEEDS = range(12)
SMALL_SEGMENTS: Final = replace(CONFIG, segment_bytes=400, may_have_gaps=True)
KEYS: Final = 3
COUNT: Final = 24


def random_batches(random: Random) -> list[bytes]:
    batches: list[bytes] = []
    offset = 0
    for _ in range(24):
        offset += random.choice((0, 0, 1, 5, 40))
        values = tuple(bytes(random.randrange(40)) for _ in range(random.choice((1, 1, 3))))
        batches.append(make_batch(offset, values=values, timestamp=1_000 + random.randrange(50)))
        offset += len(values)
    return batches


def opened(files: FaultyFiles, checkpoint: LogCheckpoint | None = None) -> LoadedLog:
    return loaded(files, checkpoint or LogCheckpoint(), GAPS)


def filled(files: FaultyFiles, batches: list[bytes]) -> LocalLog:
    log = opened(files).log
    for batch in batches:
        log.append(batch)
    return log


def end_of(batches: list[bytes]) -> int:
    return read_header(batches[-1]).next_offset if batches else 0


def check_reads(log: LocalLog, batches: list[bytes]) -> None:
    """Check that a read from any offset begins with the first batch that ends there or behind."""
    for offset in range(log.log_start_offset, log.log_end_offset):
        rest = [batch for batch in batches if read_header(batch).next_offset > offset]
        assert bytes(log.read(offset, 1)) == b"".join(rest[:1])
        wanted = b"".join(rest)
        data = bytes(log.read(offset, 500))
        assert wanted.startswith(data)
        assert bool(data) == bool(rest)
    assert not log.read(log.log_end_offset, 500)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_offset_is_read_before_and_after_a_restart(seed: int) -> None:
    batches = random_batches(Random(seed))
    files = FaultyFiles()
    log = filled(files, batches)
    check_reads(log, batches)
    log.close()
    check_reads(opened(files.after_process_crash(), clean(end_of(batches))).log, batches)
    check_reads(opened(files.after_process_crash()).log, batches)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_truncated_log_ends_with_its_last_batch(seed: int) -> None:
    batches = random_batches(Random(seed))
    for cut in range(0, end_of(batches) + 1, 17):
        files = FaultyFiles()
        log = filled(files, batches)
        log.flush()
        end_offset = log.truncate_to(cut, now_ms=0)
        kept = [batch for batch in batches if read_header(batch).next_offset <= cut]
        assert end_of(kept) <= end_offset <= cut
        assert log.recovery_point == end_offset
        check_reads(log, kept)
        again = opened(files.after_process_crash(), crashed(end_offset)).log
        check_reads(again, kept)
        again.append(make_batch(cut + 3, epoch=9))
        assert bytes(again.read(end_offset, 1)) == make_batch(cut + 3, epoch=9)


def test_a_segment_that_begins_after_a_gap_is_named_after_its_first_batch() -> None:
    log = opened(FaultyFiles()).log
    log.append(make_batch(0, values=(bytes(500),)))
    log.append(make_batch(77, values=(bytes(500),)))
    assert [segment.base_offset for segment in log.segments] == [0, 77]
    assert bytes(log.read(5, 1)) == make_batch(77, values=(bytes(500),))


def test_a_gap_at_the_end_is_not_damage() -> None:
    """The active segment is empty and begins above the last batch that compaction left."""
    log = opened(FaultyFiles()).log
    log.append(make_batch(0, values=(bytes(500),)))
    log.append(make_batch(77, values=(bytes(500),)))
    log.truncate_to(77, now_ms=0)
    assert log.log_end_offset == 77
    assert not log.read(3, 100)


@pytest.mark.parametrize("is_cleanly_closed", [True, False])
def test_batches_that_go_back_are_damage(*, is_cleanly_closed: bool) -> None:
    files = FaultyFiles()
    filled(files, [make_batch(0), make_batch(5), make_batch(9)]).close()
    files.names[HERE / "00000000000000000000.log"].content[len(make_batch(0)) + 7] = 11
    checkpoint = clean(10) if is_cleanly_closed else crashed(10)
    with pytest.raises(CorruptLogError):
        opened(files, checkpoint).log.read(1, 1)


def test_a_last_segment_that_lost_its_last_batch_is_damage_after_a_clean_shutdown() -> None:
    files = FaultyFiles()
    filled(files, [make_batch(0), make_batch(5), make_batch(9)]).close()
    del files.names[HERE / "00000000000000000000.log"].content[-len(make_batch(9)) :]
    with pytest.raises(CorruptLogError, match="end at offset 6, not at 10"):
        opened(files, clean(10)).log.read(0, 1)


def test_an_appended_batch_may_not_begin_below_the_end() -> None:
    log = filled(FaultyFiles(), [make_batch(5)])
    with pytest.raises(InvalidAppendError):
        log.append(make_batch(5))


def test_a_log_without_gaps_takes_none_as_before() -> None:
    strict = loaded(FaultyFiles()).log
    strict.append(make_batch(0))
    with pytest.raises(InvalidAppendError):
        strict.append(make_batch(2))
    other = FaultyFiles()
    filled(other, [make_batch(0), make_batch(5)]).close()
    with pytest.raises(CorruptLogError):
        loaded(other.after_process_crash(), clean(6)).log.read(0, 1)
    with pytest.raises(CorruptLogError, match="instead of 1"):
        loaded(other.after_process_crash(), crashed(6))


@pytest.mark.parametrize("kept", range(8))
def test_a_segment_that_outlived_the_end_of_the_one_before_goes_unless_compaction_made_the_gap(
    files: FaultyFiles, kept: int
) -> None:
    """Each segment reaches the disk when the operating system likes, until it is flushed."""
    batches = [make_batch(offset) for offset in range(12)]
    first = filled(files, batches).segments[0]
    size = len(batches[0])
    files = files.after_process_crash()
    del files.names[first.path].content[kept * size :]
    assert first.end_offset == 8

    assert opened(files.after_process_crash()).log.log_end_offset == 12
    cut = opened(files.after_process_crash(), LogCheckpoint(is_compacted=False))
    check_reads(cut.log, batches[:kept])
    assert cut.log.log_end_offset == kept
    cut.log.append(batches[kept])

    durable = LogCheckpoint(is_compacted=False, recovery_point=kept + 1)
    assert opened(files.after_process_crash(), durable).log.log_end_offset == 12


def batches() -> list[bytes]:
    return [
        build_batch(
            [RecordData(b"value %d" % offset, b"key %d" % (offset % KEYS), 1_000 + offset)],
            BatchOptions(base_offset=offset, partition_leader_epoch=1),
        )
        for offset in range(COUNT)
    ]


def flushed(files: FaultyFiles) -> LocalLog:
    log = loaded(files, LogCheckpoint(), SMALL_SEGMENTS).log
    for batch in batches():
        log.append(batch)
    log.flush()
    return log


def clean_all(log: LocalLog, files: FaultyFiles) -> None:
    cleaner = Cleaner(OffsetMap(size_bytes=2400, load_factor=0.9), files=files)
    cleaner.clean(SharedLog(log), work(log))


def work(log: LocalLog) -> Pass:
    return Pass(
        first_dirty_offset=0,
        first_uncleanable_offset=log.segments[-1].base_offset,
        high_watermark=log.segments[-1].base_offset,
        last_records={},
        delete_retention_ms=0,
        now_ms=5_000,
    )


def latest(log: LocalLog) -> dict[bytes | None, bytes | None]:
    (*found,) = (one for batch in content(log) for one in next(read_batches(batch)).records())
    return {record.key: record.value for record in found}


def names(files: FaultyFiles, suffix: str) -> list[str]:
    return [name for name in files.list_names(HERE) if name.endswith(suffix)]


def test_the_owner_of_a_log_does_not_wait_until_its_new_names_are_durable() -> None:
    files = FaultyFiles()
    log = flushed(files)
    in_owner: list[tuple[str, str]] = []

    def run_in_owner(replacing: Callable[[], None]) -> None:
        before = len(files.calls)
        replacing()
        in_owner.extend(files.calls[before:])

    cleaner = Cleaner(OffsetMap(size_bytes=2400, load_factor=0.9), files=files)
    cleaner.clean(SharedLog(log, run_in_owner), work(log))
    assert {operation for operation, _ in in_owner} & {"rename", "sync", "sync_directory"} == {
        "rename"
    }
    assert set(files.durable) == set(files.names)


def calls_of_a_pass() -> int:
    files = FaultyFiles()
    log = flushed(files)
    before = len(files.calls)
    clean_all(log, files)
    return len(files.calls) - before


def test_a_cleaned_log_is_smaller_and_says_the_same_after_a_restart(files: FaultyFiles) -> None:
    log = flushed(files)
    before, size = latest(log), log.size_bytes
    clean_all(log, files)
    assert latest(log) == before
    assert log.size_bytes < size / 2
    assert names(files, ".cleaned") == names(files, ".swap") == []
    assert names(files, ".deleted")
    log.close()
    again = loaded(files.after_process_crash(), clean(COUNT), SMALL_SEGMENTS).log
    assert latest(again) == before
    assert again.size_bytes == log.size_bytes


@pytest.mark.parametrize("call", range(0, calls_of_a_pass(), 3))
def test_no_record_is_lost_wherever_the_power_is_cut(files: FaultyFiles, call: int) -> None:
    log = flushed(files)
    before = latest(log)
    files.calls_until_power_cut = call
    with pytest.raises(PowerCutError):
        clean_all(log, files)
    for seed in range(4):
        left = files.after_power_cut(Random(seed))
        found = loaded(left, LogCheckpoint(recovery_point=COUNT), SMALL_SEGMENTS)
        assert latest(found.log) == before
        assert found.log.log_end_offset == COUNT
        for suffix in (".cleaned", ".swap", ".deleted"):
            assert names(left, suffix) == []
        found.log.close()
        assert latest(loaded(left, clean(COUNT), SMALL_SEGMENTS).log) == before


def test_a_swap_above_cleaned_files_is_undone() -> None:
    files = some_files("10.log", "10.log.cleaned", "10.index.swap", "5.index.swap", "20.log.swap")
    removed = finish_interrupted_swap(HERE, files)
    assert sorted(removed) == sorted(map(long, ("10.log.cleaned", "10.index.swap", "20.log.swap")))
    assert files.list_names(HERE) == [long("5.index"), long("10.log")]


def test_a_complete_swap_replaces_the_segments_of_its_offsets() -> None:
    files = some_files(
        "5.log.swap",
        "5.index.swap",
        "5.snapshot",
        "5.log",
        "6.log",
        "6.index",
        "6.snapshot",
        "6.txnindex",
        "9.log",
        "4.log",
    )
    files.names[HERE / long("5.log.swap")] = MemoryFile(batches()[5] + batches()[8])
    finish_interrupted_swap(HERE, files)
    assert files.list_names(HERE) == [
        long(name) for name in ("4.log", "5.index", "5.log", "5.snapshot", "9.log")
    ]
    assert bytes(files.names[HERE / long("5.log")].content) == batches()[5] + batches()[8]


def test_a_complete_swap_that_cannot_be_read_stops_the_start() -> None:
    files = some_files("5.log.swap", "5.log", "6.log")
    files.names[HERE / long("5.log.swap")] = MemoryFile(b"rubbish" * 20)
    with pytest.raises(CorruptLogError):
        finish_interrupted_swap(HERE, files)
    assert len(files.names) == 3


def test_an_aborted_pass_leaves_nothing_behind(files: FaultyFiles) -> None:
    log = flushed(files)
    calls: list[None] = []

    def check() -> None:
        calls.append(None)
        if len(calls) > 6:
            raise CleaningAbortedError("something else is to happen")

    keys = OffsetMap(size_bytes=2400, load_factor=0.9)
    with pytest.raises(CleaningAbortedError):
        Cleaner(keys, files=files, check_aborted=check).clean(SharedLog(log), work(log))
    assert [name for _, name in files.calls if name.endswith(".cleaned")]
    assert names(files, ".cleaned") == []
    clean_all(log, files)


def long(name: str) -> str:
    number, _, suffix = name.partition(".")
    return f"{int(number):020d}.{suffix}"


def some_files(*short: str) -> FaultyFiles:
    return FaultyFiles(names={Path(HERE / long(name)): MemoryFile() for name in short})

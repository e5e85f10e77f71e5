"""The replacement of segments by cleaned ones, cut off at every call to the disk."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.support.faulty_files import FaultyFiles, MemoryFile, PowerCutError
from tests.unit.storage.local_logs import CONFIG, HERE, clean, content, loaded

from kvorum.storage.cleaner.cleaner import Cleaner, Pass
from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.errors import CleaningAbortedError, CorruptLogError
from kvorum.storage.log.interrupted_swap import finish_interrupted_swap
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.log_loader import LogCheckpoint
from kvorum.wire.records import BatchOptions, RecordData, build_batch, read_batches

GAPS: Final = replace(CONFIG, segment_bytes=400, may_have_gaps=True)
KEYS: Final = 3
COUNT: Final = 24


def batches() -> list[bytes]:
    return [
        build_batch(
            [RecordData(b"value %d" % offset, b"key %d" % (offset % KEYS), 1_000 + offset)],
            BatchOptions(base_offset=offset, partition_leader_epoch=1),
        )
        for offset in range(COUNT)
    ]


def filled(files: FaultyFiles) -> LocalLog:
    log = loaded(files, LogCheckpoint(), GAPS).log
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
    log = filled(files)
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
    log = filled(files)
    before = len(files.calls)
    clean_all(log, files)
    return len(files.calls) - before


def test_a_cleaned_log_is_smaller_and_says_the_same_after_a_restart(files: FaultyFiles) -> None:
    log = filled(files)
    before, size = latest(log), log.size_bytes
    clean_all(log, files)
    assert latest(log) == before
    assert log.size_bytes < size / 2
    assert names(files, ".cleaned") == names(files, ".swap") == []
    assert names(files, ".deleted")
    log.close()
    again = loaded(files.after_process_crash(), clean(COUNT), GAPS).log
    assert latest(again) == before
    assert again.size_bytes == log.size_bytes


@pytest.mark.parametrize("call", range(0, calls_of_a_pass(), 3))
def test_no_record_is_lost_wherever_the_power_is_cut(files: FaultyFiles, call: int) -> None:
    log = filled(files)
    before = latest(log)
    files.calls_until_power_cut = call
    with pytest.raises(PowerCutError):
        clean_all(log, files)
    for seed in range(4):
        left = files.after_power_cut(Random(seed))
        found = loaded(left, LogCheckpoint(recovery_point=COUNT), GAPS)
        assert latest(found.log) == before
        assert found.log.log_end_offset == COUNT
        for suffix in (".cleaned", ".swap", ".deleted"):
            assert names(left, suffix) == []
        found.log.close()
        assert latest(loaded(left, clean(COUNT), GAPS).log) == before


def test_a_swap_above_cleaned_files_is_undone() -> None:
    files = some_files("10.log", "10.log.cleaned", "10.index.swap", "5.index.swap", "20.log.swap")
    removed = finish_interrupted_swap(HERE, files)
    assert sorted(removed) == sorted(map(long, ("10.log.cleaned", "10.index.swap", "20.log.swap")))
    assert files.list_names(HERE) == [long("5.index"), long("10.log")]


def test_a_complete_swap_replaces_the_segments_of_its_offsets() -> None:
    files = some_files(
        *("5.log.swap", "5.index.swap", "5.snapshot", "5.log", "6.log", "6.index", "6.snapshot"),
        *("6.txnindex", "9.log", "4.log"),
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
    log = filled(files)
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

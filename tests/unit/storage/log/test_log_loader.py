"""Opening the log of a partition: after a clean shutdown, and after a crash."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.batch_maker import make_batch, make_batches
from tests.support.faulty_files import Fault, FaultyFiles, MemoryFile
from tests.unit.storage.local_logs import (
    BASES,
    BATCHES,
    CHANGES,
    CONFIG,
    HERE,
    clean,
    closed,
    content,
    crashed,
    filled,
    loaded,
    on_disk,
    segment,
)

from kvorum.storage.errors import CorruptLogError, OffsetOutOfRangeError, StorageError
from kvorum.storage.log.log_config import LogConfig
from kvorum.wire.records.legacy import read_entries

WITH_GAPS = replace(CONFIG, may_have_gaps=True, segment_bytes=100_000)
OLD_SETS = (
    *(f"magic0-{codec}-0" for codec in ("none", "gzip", "snappy", "lz4")),
    *(f"magic1-{codec}-0" for codec in ("none", "gzip", "snappy", "lz4", "appendtime")),
    "mixed-0",
)


@pytest.mark.parametrize("offset", range(21))
def test_truncation_lowers_the_recovery_point_before_anything_goes(offset: int) -> None:
    files = FaultyFiles()
    log = filled(files)
    log.flush()
    files.calls.clear()
    assert log.truncate_to(offset, now_ms=0) == offset
    assert (log.log_end_offset, log.recovery_point) == (offset, offset)
    assert content(log) == BATCHES[:offset]
    if offset < 20:
        changes = [call for call in files.calls if call[0] in CHANGES or call[0].startswith("keep")]
        assert changes[0] == ("keep durably", str(offset))
    log.append(make_batch(offset, epoch=5))
    assert content(loaded(files.after_process_crash()).log)[-1] == make_batch(offset, epoch=5)


@pytest.mark.parametrize("count", [0, 1, 6, 12, 15, 18, 20])
def test_a_clean_start_reads_no_batch_and_no_index_and_changes_nothing(count: int) -> None:
    files = closed(count)
    before = on_disk(files)
    found = loaded(files, clean(count))
    assert {name for operation, name in files.calls if operation == "read"} == {
        "leader-epoch-checkpoint"
    }
    assert not [call for call in files.calls if call[0] in CHANGES]
    assert (found.recovered_segments, found.torn_tail) == ((), None)
    log = found.log
    assert (log.log_end_offset, log.recovery_point) == (count, count)
    assert content(log) == BATCHES[:count]
    log.close()
    assert on_disk(files) == before


@pytest.mark.parametrize("count", range(21))
def test_a_log_goes_on_after_a_clean_start_as_if_it_had_never_stopped(count: int) -> None:
    files = closed(count)
    log = loaded(files, clean(count)).log
    for batch in BATCHES[count:]:
        log.append(batch)
    assert content(log) == BATCHES
    log.close()
    never_stopped = on_disk(closed())
    stopped = on_disk(files)
    for name in never_stopped:
        # Closing the log leaves one more time index entry, and the state of producers at its end.
        if not name.endswith((".timeindex", ".snapshot")):
            assert stopped[name] == never_stopped[name], name


def test_a_first_use_reads_only_what_lies_after_the_last_index_entry() -> None:
    config = LogConfig(index_interval_bytes=500)
    files = FaultyFiles()
    log = loaded(files, config=config).log
    for batch in make_batches(0, 500):
        log.append(batch)
    log.close()
    left = files.after_process_crash()
    loaded(left, clean(500), config).log.append(make_batch(500))
    reads = [name for operation, name in left.calls if operation == "read"]
    assert reads.count(segment(0).name) <= 3
    assert reads.count(f"{0:020d}.index") == 1


@pytest.mark.parametrize("recovery_point", range(21))
def test_a_start_after_a_crash_reads_only_from_the_segment_with_the_recovery_point_on(
    files: FaultyFiles, recovery_point: int
) -> None:
    filled(files).flush()
    left = files.after_process_crash()
    found = loaded(left, crashed(recovery_point))
    first = max(base for base in BASES if base <= recovery_point)
    expected = [segment(base) for base in BASES if base >= first]
    read = {name for operation, name in left.calls if operation == "read" and "log" in name}
    assert read == {path.name for path in expected}
    assert found.recovered_segments == tuple(expected)
    assert (found.log.recovery_point, content(found.log)) == (20, BATCHES)
    assert found.log.epoch_starts == ((1, 0), (3, 12))


@pytest.mark.parametrize("recovery_point", [12, 13, 17])
def test_the_log_is_cut_at_the_first_bad_batch_after_the_recovery_point(
    recovery_point: int,
) -> None:
    size = len(BATCHES[0])
    for position in range((17 - 12) * size, 6 * size):
        # The epoch lies outside the checksum.
        if position - 5 * size in range(12, 16):
            continue
        files = FaultyFiles()
        filled(files)
        left = files.after_process_crash()
        left.names[segment(12)].content[position] ^= 4
        found = loaded(left, crashed(recovery_point))
        assert content(found.log) == BATCHES[:17]
        assert found.torn_tail is not None
        assert (found.torn_tail.offset, found.torn_tail.size) == (17, size)
        assert segment(18) not in left.names
        found.log.append(make_batch(17, epoch=4))
        again = loaded(left.after_process_crash(), crashed(17))
        assert content(again.log) == [*BATCHES[:17], make_batch(17, epoch=4)]


@pytest.mark.parametrize("bit", [31, 32, 62])
def test_a_batch_beyond_the_reach_of_the_indexes_is_a_torn_end(bit: int) -> None:
    """No checksum covers the offset of a batch, and topics may lack records between batches."""
    files = FaultyFiles()
    filled(files)
    left = files.after_process_crash()
    byte, bit_of_byte = divmod(bit, 8)
    left.names[segment(18)].content[len(BATCHES[18]) + 7 - byte] ^= 1 << bit_of_byte
    found = loaded(left, crashed(0), config=WITH_GAPS)
    assert content(found.log) == BATCHES[:19]
    assert found.torn_tail is not None


def test_a_lost_end_below_the_start_of_the_log_costs_nothing_above_it() -> None:
    files = FaultyFiles()
    filled(files)
    left = files.after_process_crash()
    del left.names[segment(6)].content[:]
    checkpoint = replace(crashed(0, log_start_offset=12), is_compacted=False)
    found = loaded(left, checkpoint, config=WITH_GAPS)
    assert content(found.log) == BATCHES[12:]


def flip(files: FaultyFiles) -> None:
    files.names[segment(12)].content[2 * len(BATCHES[0]) + 70] ^= 1


def cut(files: FaultyFiles) -> None:
    del files.names[segment(18)].content[len(BATCHES[0]) :]


def lose_a_segment(files: FaultyFiles) -> None:
    del files.names[segment(12)]


def lose_every_segment(files: FaultyFiles) -> None:
    for base in BASES:
        del files.names[segment(base)]


@pytest.mark.parametrize(
    ("damage", "recovery_point", "why"),
    [
        (flip, 15, "though it was durable"),
        (cut, 20, "the log ends at offset 19, though everything below 20 was durable"),
        (lose_a_segment, 13, "the log ends at offset 12"),
        (lose_every_segment, 1, "the log ends at offset 0"),
    ],
)
def test_what_is_gone_below_the_recovery_point_stops_and_changes_nothing(
    damage: Callable[[FaultyFiles], None], recovery_point: int, why: str
) -> None:
    files = closed()
    damage(files)
    files.names[HERE / f"{3:020d}.index.deleted"] = MemoryFile(b"of a former run")
    before = on_disk(files)
    with pytest.raises(CorruptLogError, match=why):
        loaded(files, crashed(recovery_point))
    assert on_disk(files) == before
    assert not [call for call in files.calls if call[0] in CHANGES]


def test_damage_in_what_was_not_read_is_found_by_the_first_read() -> None:
    files = closed()
    flip(files)
    log = loaded(files, crashed(20)).log
    assert bytes(log.read(12, 2 * len(BATCHES[0]))) == b"".join(BATCHES[12:14])
    with pytest.raises(CorruptLogError):
        log.read(14, 1)
    lost = closed()
    lose_a_segment(lost)
    with pytest.raises(CorruptLogError, match="end at offset 12, not at 18"):
        loaded(lost, crashed(20)).log.read(6, 1)


@pytest.mark.parametrize("claimed", [19, 21, 500])
def test_a_clean_shutdown_that_names_another_end_is_found_out_before_anything_is_written(
    claimed: int,
) -> None:
    files = closed()
    log = loaded(files, clean(claimed)).log
    before = on_disk(files)
    with pytest.raises(CorruptLogError, match=f"end at offset 20, not at {claimed}"):
        log.append(make_batch(claimed, epoch=3))
    with pytest.raises(CorruptLogError, match="end at offset 20"):
        log.read(18, 100)
    assert on_disk(files) == before


@pytest.mark.parametrize("claimed", [0, 5, 17, 18])
def test_a_recovery_point_before_the_last_segment_is_not_taken_for_the_end(claimed: int) -> None:
    found = loaded(closed(), clean(claimed))
    assert found.recovered_segments
    assert content(found.log) == BATCHES


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("bad", [None, b"", b"rubbish", bytes(24), b"\1" * 24, b"\0\0\0\1" * 6])
def test_an_index_that_does_not_fit_is_made_again_when_it_is_used(
    suffix: str, bad: bytes | None
) -> None:
    files = closed()
    path = HERE / f"{6:020d}.{suffix}"
    good = bytes(files.names[path].content)
    assert good
    if bad is None:
        del files.names[path]
    else:
        files.names[path] = MemoryFile(bad)
    assert content(loaded(files, clean(20)).log) == BATCHES
    if suffix == "index" and bad != b"":
        assert bytes(files.names[path].content) == good


def test_epochs_without_records_are_forgotten_at_a_start(files: FaultyFiles) -> None:
    log = filled(files)
    log.assign_epoch(9)
    assert log.latest_epoch == 9
    assert loaded(files.after_process_crash()).log.epoch_starts == ((1, 0), (3, 12))


def test_a_log_that_ends_before_its_start_begins_there() -> None:
    log = loaded(closed(), crashed(50, 50)).log
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (50, 50, 50)


def test_files_of_the_metadata_log_are_left_alone() -> None:
    files = closed()
    names = ("00000000000000000009-0000000001.checkpoint", "kvorum-flushed-offset")
    for name in names:
        files.names[HERE / name] = MemoryFile(b"not mine")
    loaded(files, crashed(0)).log.close()
    assert all(bytes(files.names[HERE / name].content) == b"not mine" for name in names)


@given(seed=st.integers(min_value=0), is_flushed_on_roll=st.booleans())
@settings(max_examples=200)
def test_a_power_cut_loses_nothing_below_the_recovery_point(
    seed: int, *, is_flushed_on_roll: bool
) -> None:
    random = Random(seed)
    config = replace(CONFIG, is_flushed_on_roll=is_flushed_on_roll)
    files = FaultyFiles()
    expected: list[bytes] = []
    recovery_point = 0
    for _ in range(4):
        log = loaded(files, crashed(recovery_point), config).log
        assert content(log) == expected
        for _ in range(random.randint(0, 12)):
            deed = random.random()
            if deed < 0.2:
                log.flush()
            elif deed < 0.3:
                end = log.truncate_to(random.randint(0, log.log_end_offset), now_ms=0)
                expected = expected[:end]
            else:
                batch = make_batch(
                    log.log_end_offset, epoch=random.choice([log.latest_epoch or 1, 9])
                )
                log.append(batch)
                expected.append(batch)
        # A checkpoint of now and then: any point that was reached, and was not lowered since.
        recovery_point = random.randint(min(recovery_point, log.recovery_point), log.recovery_point)
        files = files.after_power_cut(random)
        survived = content(loaded(files, crashed(recovery_point), config).log)
        assert survived == expected[: len(survived)]
        assert len(survived) >= recovery_point
        expected = survived


def unsynced_indexes(files: FaultyFiles) -> set[int]:
    """Return the base offsets of the segments with an index that is not durable."""
    return {
        int(path.stem)
        for path, file in files.names.items()
        if path.suffix in {".index", ".timeindex"} and file.synced != bytes(file.content)
    }


@pytest.mark.parametrize("count", range(1, 21))
def test_indexes_of_a_segment_flushed_before_it_was_finished_become_durable(count: int) -> None:
    files = FaultyFiles()
    log = loaded(files, config=replace(CONFIG, is_flushed_on_roll=False)).log
    for batch in BATCHES[:count]:
        log.append(batch)
        log.flush()
    assert unsynced_indexes(files) <= {max(base for base in BASES if base < count)}
    log.roll()
    log.close()
    assert unsynced_indexes(files) == set()


@pytest.mark.parametrize("base", BASES[1:])
def test_a_recovery_point_between_segments_has_the_one_before_it_read_too(base: int) -> None:
    """Its indexes may not be durable."""
    config = replace(CONFIG, is_flushed_on_roll=False)
    files = FaultyFiles()
    filled(files)
    found = loaded(files.after_process_crash(), crashed(base), config)
    read_from = BASES[BASES.index(base) - 1]
    assert found.recovered_segments == tuple(segment(one) for one in BASES if one >= read_from)


@pytest.mark.parametrize("number", range(1, 16))
@pytest.mark.parametrize("operation", ["write", "sync", "rename", "create", "open", "truncate"])
def test_after_any_failure_the_log_says_so_and_opens_again(operation: str, number: int) -> None:
    files = FaultyFiles()
    log = filled(files)
    log.flush()
    files.faults = [Fault(operation, number, written=7)]
    failed = True
    with suppress(StorageError):
        for batch in make_batches(20, 8, epoch=5):
            log.append(batch)
        log.flush()
        log.close()
        failed = False
    assert failed == (files.faults[0].number <= 0)
    files.faults = []
    survived = content(loaded(files.after_process_crash(), crashed(20)).log)
    assert survived[:20] == BATCHES
    assert survived == (BATCHES + make_batches(20, 8, epoch=5))[: len(survived)]


def test_what_was_read_after_a_crash_is_made_durable_before_it_counts_as_such() -> None:
    files = FaultyFiles()
    filled(files)
    left = files.after_process_crash()
    found = loaded(left, crashed(13))
    synced = {name for operation, name in left.calls if operation == "sync"}
    assert {path.name for path in found.recovered_segments} <= synced
    assert ("sync_directory", HERE.name) in left.calls
    assert found.log.recovery_point == 20


@pytest.mark.parametrize("start", range(1, 20))
def test_records_that_were_given_up_stay_so_after_a_crash(files: FaultyFiles, start: int) -> None:
    filled(files)
    log = loaded(files.after_process_crash(), crashed(0, start)).log
    assert log.log_start_offset == start
    assert log.epoch_starts[0] == (1 if start < 12 else 3, start)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(start - 1, 1)


def test_an_index_whose_last_entry_names_another_offset_is_made_again() -> None:
    files = closed()
    index = files.names[HERE / f"{6:020d}.index"]
    good = bytes(index.content)
    *_, last = range(0, len(good), 8)
    index.content[last + 3] += 1
    assert content(loaded(files, clean(20)).log) == BATCHES
    assert bytes(index.content) == good


def test_a_segment_rolls_by_its_first_timestamp_after_a_clean_start_too() -> None:
    config = LogConfig(segment_ms=500, index_interval_bytes=1)
    files = FaultyFiles()
    log = loaded(files, config=config).log
    for offset in range(3):
        log.append(make_batch(offset, timestamp=1_000 + 200 * offset))
    log.close()
    again = loaded(files, clean(3), config).log
    again.append(make_batch(3, timestamp=1_500))
    assert segment(3) not in files.names
    again.append(make_batch(4, timestamp=1_501))
    assert segment(4) in files.names


def old_segment(golden_sets: Path, name: str) -> tuple[bytes, int]:
    """Return a segment that begins with messages of format 0 or 1, and where it ends."""
    data = (golden_sets / "legacy-formats" / name / segment(0).name).read_bytes()
    return data, max(entry.last_offset for entry in read_entries(data)) + 1


def old_log(data: bytes, end: int) -> FaultyFiles:
    """Return a directory with an old segment, and one of today's batches after it."""
    files = FaultyFiles()
    files.make_directory(HERE)
    files.names[segment(0)] = MemoryFile(data)
    files.names[segment(end)] = MemoryFile(make_batch(end, epoch=4))
    return files


@pytest.mark.parametrize("name", OLD_SETS)
@pytest.mark.parametrize("is_durable", [False, True])
def test_messages_of_old_formats_are_kept_and_read(
    golden_sets: Path, name: str, is_durable: bool
) -> None:
    data, end = old_segment(golden_sets, name)
    files = old_log(data, end)
    found = loaded(files, crashed(end + 1 if is_durable else 0), WITH_GAPS)
    assert found.torn_tail is None
    log = found.log
    assert (log.log_start_offset, log.log_end_offset) == (0, end + 1)
    assert on_disk(files)[segment(0).name] == data
    for entry in read_entries(data):
        rest = data[entry.position :]
        read = log.read_range(entry.last_offset, 1 << 20, end_offset=end + 1)
        assert read is not None
        assert bytes(read.records) == rest
        assert bytes(log.read(entry.last_offset, 1 << 20)) == rest
    assert bytes(log.read(end, 1 << 20)) == make_batch(end, epoch=4)
    assert log.epoch_starts == ((4, end),)
    log.append(make_batch(end + 1, epoch=4))
    log.close()
    again = loaded(files.after_process_crash(), clean(end + 2), WITH_GAPS).log
    assert bytes(again.read(0, 1 << 20)) == data


def test_the_indexes_of_old_messages_are_rebuilt(golden_sets: Path) -> None:
    data, end = old_segment(golden_sets, "mixed-0")
    files = old_log(data, end)
    log = loaded(files, crashed(0), replace(WITH_GAPS, index_interval_bytes=40)).log
    # As real Kafka rebuilds it: the offset and the place of each entry.
    expected = (
        "0000000200000048 00000008000000ce 000000090000017e 0000000b000001c2"
        "0000000e000001f3 000000110000026f 0000001400000342"
    )
    assert on_disk(files)[segment(0).with_suffix(".index").name] == bytes.fromhex(expected)
    assert log.max_timestamp == 1_500_000_000_028


@pytest.mark.parametrize("name", OLD_SETS)
def test_of_old_messages_only_a_torn_end_is_cut_off(golden_sets: Path, name: str) -> None:
    data, _ = old_segment(golden_sets, name)
    last = list(read_entries(data))[-1]
    for size in range(last.position + 1, len(data)):
        files = FaultyFiles()
        files.make_directory(HERE)
        files.names[segment(0)] = MemoryFile(data[:size])
        log = loaded(files, crashed(0), WITH_GAPS).log
        assert on_disk(files)[segment(0).name] == data[: last.position]
        assert log.log_end_offset == list(read_entries(data[: last.position]))[-1].next_offset


def test_a_damaged_old_message_that_was_durable_is_named(golden_sets: Path) -> None:
    data, end = old_segment(golden_sets, "magic0-none-0")
    third = list(read_entries(data))[2]
    wrong = bytearray(data)
    wrong[third.position + 20] ^= 1
    files = old_log(bytes(wrong), end)
    del files.names[segment(end)]
    before = on_disk(files)
    with pytest.raises(CorruptLogError) as refused:
        loaded(files, crashed(end), WITH_GAPS)
    assert (refused.value.file, refused.value.offset) == (segment(0), third.position)
    assert on_disk(files) == before


def test_a_follower_names_a_segment_of_old_messages_by_where_the_log_ended(
    golden_sets: Path,
) -> None:
    data, end = old_segment(golden_sets, "magic0-gzip-0")
    log = loaded(FaultyFiles(), config=replace(WITH_GAPS, segment_bytes=150)).log
    log.append(data)
    # The second message wraps four: their first offset is not in its header.
    assert [one.base_offset for one in log.segments] == [0, 4, 8]
    assert log.log_end_offset == end
    read = log.read_range(5, 1 << 20, end_offset=end)
    assert read is not None
    assert bytes(read.records) == data[142:257]

"""Opening a log after a crash: torn tails go, acknowledged records never do, damage stops."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.batch_maker import make_batch, make_batches
from tests.support.faulty_files import FaultyFiles, MemoryFile
from tests.unit.storage.local_logs import content
from tests.unit.storage.metadata_logs import HERE, open_log

from kvorum.storage.errors import CorruptFileError, CorruptLogError

HINT = HERE / "kvorum-flushed-offset"
BATCHES = make_batches(0, 20)
LAST_SEGMENT = HERE / f"{18:020d}.log"
BATCH_SIZE = len(BATCHES[0])


def written(*, flushed: int | None, batches: list[bytes] = BATCHES) -> FaultyFiles:
    """Return the files of a process that died: flushed up to `flushed`, None for Kafka's files."""
    files = FaultyFiles()
    log = open_log(files).local_log
    for index, batch in enumerate(batches):
        if index == flushed:
            log.flush()
        log.append(batch)
    if flushed == len(batches):
        log.flush()
    left = files.after_process_crash()
    if flushed is None:
        left.remove(HINT)
    return left


def last_segment(files: FaultyFiles) -> MemoryFile:
    assert max(files.names, key=lambda path: (path.suffix == ".log", path)) == LAST_SEGMENT
    return files.names[LAST_SEGMENT]


CUTS = range(2 * BATCH_SIZE + 1)


@pytest.mark.parametrize("hint", [None, 0, 18])
def test_a_log_cut_anywhere_above_what_was_flushed_loses_just_the_torn_batch(
    hint: int | None,
) -> None:
    for size in CUTS:
        files = written(flushed=hint)
        del last_segment(files).content[size:]
        log = open_log(files)
        whole = 18 + size // BATCH_SIZE
        assert content(log.local_log) == BATCHES[:whole]
        torn = log.recovery.torn_tail
        assert (torn.size if torn else 0) == size % BATCH_SIZE
        log.local_log.append(make_batch(whole, epoch=2))
        log.local_log.close()
        assert content(open_log(files).local_log) == [*BATCHES[:whole], make_batch(whole, epoch=2)]


@pytest.mark.parametrize("hint", [19, 20])
def test_a_log_cut_below_what_was_flushed_does_not_open(hint: int) -> None:
    for size in CUTS:
        files = written(flushed=hint)
        del last_segment(files).content[size:]
        if 18 + size // BATCH_SIZE >= hint:
            assert len(content(open_log(files).local_log)) == 18 + size // BATCH_SIZE
            continue
        before = {path: bytes(file.content) for path, file in files.names.items()}
        with pytest.raises(CorruptLogError) as caught:
            open_log(files)
        assert caught.value.file == LAST_SEGMENT
        assert caught.value.offset == size - size % BATCH_SIZE
        assert caught.value.advice
        assert {path: bytes(file.content) for path, file in files.names.items()} == before


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_a_flipped_bit_in_a_flushed_batch_always_stops(bit: int) -> None:
    for position in range(2 * BATCH_SIZE):
        files = written(flushed=20)
        last_segment(files).content[position] ^= 1 << bit
        with pytest.raises(CorruptLogError):
            open_log(files)


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_without_a_flushed_offset_a_flipped_bit_stops_too(bit: int) -> None:
    """Except in the last batch's epoch, which no checksum covers."""
    for position in range(2 * BATCH_SIZE):
        if position in range(BATCH_SIZE + 12, BATCH_SIZE + 16):
            continue
        files = written(flushed=None)
        last_segment(files).content[position] ^= 1 << bit
        with pytest.raises(CorruptLogError):
            open_log(files)


@pytest.mark.parametrize("hint", [None, 0, 20])
def test_a_flipped_bit_below_the_last_segment_always_stops(hint: int | None) -> None:
    for position in range(0, 6 * BATCH_SIZE, 7):
        files = written(flushed=hint)
        files.names[HERE / f"{6:020d}.log"].content[position] ^= 4
        with pytest.raises(CorruptLogError):
            open_log(files)


@pytest.mark.parametrize("hint", [None, 20])
@pytest.mark.parametrize("count", [1, 60, 61, 5_000])
def test_zeros_after_the_last_batch_are_cut_off(hint: int | None, count: int) -> None:
    files = written(flushed=hint)
    last_segment(files).content.extend(bytes(count))
    log = open_log(files)
    assert content(log.local_log) == BATCHES
    assert log.recovery.torn_tail is not None
    assert log.recovery.torn_tail.size == count
    assert "never acknowledged" in log.recovery.lines()[0]


@given(st.binary(min_size=1, max_size=200))
@settings(max_examples=200)
def test_garbage_after_the_last_flushed_batch_is_cut_off(garbage: bytes) -> None:
    files = written(flushed=20)
    last_segment(files).content.extend(garbage)
    assert content(open_log(files).local_log) == BATCHES
    assert last_segment(files).content == b"".join(BATCHES[18:])


@given(st.binary(min_size=1, max_size=200))
@settings(max_examples=200)
def test_garbage_is_never_taken_for_records_nor_records_for_garbage(garbage: bytes) -> None:
    files = written(flushed=None)
    last_segment(files).content.extend(garbage)
    try:
        log = open_log(files)
    except CorruptLogError:
        assert last_segment(files).content == b"".join(BATCHES[18:]) + garbage
    else:
        assert content(log.local_log) == BATCHES


@pytest.mark.parametrize("hint", [None, 18, 20])
def test_a_batch_that_lost_its_blocks_is_torn_unless_it_was_flushed(hint: int | None) -> None:
    files = written(flushed=hint, batches=[*BATCHES, make_batch(20, values=(b"x" * 3_000,))])
    segment = files.names[HERE / f"{20:020d}.log"]
    segment.content[1_000:] = bytes(len(segment.content) - 1_000)
    assert content(open_log(files).local_log) == BATCHES


def test_a_torn_tail_before_an_empty_segment_is_cut_off() -> None:
    files = written(flushed=18)
    files.names[HERE / f"{20:020d}.log"] = MemoryFile()
    del files.names[LAST_SEGMENT].content[-3:]
    log = open_log(files)
    assert content(log.local_log) == BATCHES[:19]
    assert HERE / f"{20:020d}.log" not in files.names
    log.local_log.append(BATCHES[19])
    log.local_log.close()
    assert content(open_log(files).local_log) == BATCHES


@pytest.mark.parametrize("position", range(32))
def test_a_damaged_flushed_offset_stops(position: int) -> None:
    files = written(flushed=20)
    files.names[HINT].content[position] ^= 1
    with pytest.raises(CorruptFileError, match="not a flushed offset"):
        open_log(files)


def test_indexes_are_rebuilt_whatever_they_hold() -> None:
    files = written(flushed=20)
    index = HERE / f"{6:020d}.index"
    good = bytes(files.names[index].content)
    assert len(good) >= 8
    for bad in (b"", b"rubbish", good + bytes(4096), bytes(len(good))):
        files.names[index] = MemoryFile(bad)
        log = open_log(files)
        assert index in log.recovery.rebuilt_indexes
        assert bytes(files.names[index].content) == good
        assert content(log.local_log) == BATCHES


@given(seed=st.integers(min_value=0))
@settings(max_examples=100)
def test_a_power_cut_loses_nothing_that_was_flushed(seed: int) -> None:
    random = Random(seed)
    files = FaultyFiles()
    expected: list[bytes] = []
    for _ in range(4):
        log = open_log(files)
        assert content(log.local_log) == expected
        flushed = log.local_log.log_end_offset
        for _ in range(random.randint(0, 12)):
            deed = random.random()
            if deed < 0.2:
                flushed = log.local_log.flush()
            elif deed < 0.3:
                end = log.local_log.truncate_to(
                    random.randint(0, log.local_log.log_end_offset), now_ms=0
                )
                expected, flushed = expected[:end], min(flushed, end)
            else:
                batch = make_batch(
                    log.local_log.log_end_offset, epoch=random.choice([log.last_epoch, 9])
                )
                log.local_log.append(batch)
                expected.append(batch)
        files = files.after_power_cut(random)
        survived = content(open_log(files).local_log)
        assert survived == expected[: len(survived)]
        assert len(survived) >= flushed
        expected = survived

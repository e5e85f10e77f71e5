"""Opening a log: torn tails go, acknowledged records never do, a refused start changes nothing."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.batch_maker import make_batch, make_batches, make_snapshot
from tests.support.faulty_files import FaultyFiles, MemoryFile
from tests.unit.storage.local_logs import CHANGES, content, on_disk
from tests.unit.storage.metadata_logs import HERE, add_snapshot, open_log

from kvorum.storage.errors import (
    CorruptFileError,
    CorruptLogError,
    MissingSnapshotError,
    StorageError,
)
from kvorum.storage.names import snapshot_name
from kvorum.storage.small_files.partition_metadata import (
    PARTITION_METADATA,
    encode_partition_metadata,
)
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

HINT = HERE / "kvorum-flushed-offset"
BATCHES = make_batches(0, 20)
LAST_SEGMENT = HERE / f"{18:020d}.log"
BATCH_SIZE = len(BATCHES[0])
OLDER, LATEST = OffsetAndEpoch(14, 1), OffsetAndEpoch(16, 1)
EPOCHS = HERE / "leader-epoch-checkpoint"
FLUSHED = HERE / "kvorum-flushed-offset"


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
        flushed = log.log_end_offset
        for _ in range(random.randint(0, 12)):
            deed = random.random()
            if deed < 0.2:
                flushed = log.local_log.flush()
            elif deed < 0.3:
                end = log.local_log.truncate_to(random.randint(0, log.log_end_offset), now_ms=0)
                expected, flushed = expected[:end], min(flushed, end)
            else:
                batch = make_batch(log.log_end_offset, epoch=random.choice([log.last_epoch, 9]))
                log.local_log.append(batch)
                expected.append(batch)
        files = files.after_power_cut(random)
        survived = content(open_log(files).local_log)
        assert survived == expected[: len(survived)]
        assert len(survived) >= flushed
        expected = survived


def segment(base_offset: int) -> Path:
    return HERE / f"{base_offset:020d}.log"


def put_snapshot(files: FaultyFiles, snapshot_id: OffsetAndEpoch, *, suffix: str = "") -> None:
    path = HERE / (snapshot_name(snapshot_id) + suffix)
    files.names[path] = MemoryFile(make_snapshot(epoch=snapshot_id.epoch))


def untidy() -> FaultyFiles:
    """Return a directory that opens, and at the opening of which much is removed and mended.

    Segments begin at 12 and 18. Everything up to 20 is durable, and after that is a torn batch.
    """
    files = FaultyFiles()
    log = open_log(files)
    for batch in BATCHES:
        log.local_log.append(batch)
    log.local_log.flush()
    for snapshot_id in (OLDER, LATEST):
        add_snapshot(log.snapshots, snapshot_id)
    assert log.delete_before_snapshot(LATEST, now_ms=0)
    log.local_log.update_files(now_ms=0)
    left = files.after_process_crash()
    left.names[segment(18)].content.extend(make_batch(20)[:-5])
    left.names[segment(20)] = MemoryFile()
    left.names[HERE / f"{5:020d}.index"] = MemoryFile(b"of no segment")
    left.names[HERE / f"{5:020d}.snapshot"] = MemoryFile(b"of no segment")
    put_snapshot(left, OffsetAndEpoch(17, 1), suffix=".part")
    del left.names[HERE / f"{18:020d}.index"]
    return left


def put(path: Path, data: bytes) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        files.names[path] = MemoryFile(data)

    return change


def lose(*names: str) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        for name in names:
            del files.names[HERE / name]

    return change


def flip(path: Path, position: int) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        files.names[path].content[position] ^= 4

    return change


def cut(path: Path, size: int) -> Callable[[FaultyFiles], None]:
    def change(files: FaultyFiles) -> None:
        del files.names[path].content[size:]

    return change


def swap_batches(files: FaultyFiles) -> None:
    files.names[segment(18)].content[:] = BATCHES[19] + BATCHES[18]


def add_older_epoch(files: FaultyFiles) -> None:
    files.names[segment(18)].content[:] = BATCHES[18] + make_batch(19, epoch=0)


def add_rotten_snapshot_ahead(files: FaultyFiles) -> None:
    ahead = OffsetAndEpoch(50, 3)
    put_snapshot(files, ahead)
    del files.names[HERE / snapshot_name(ahead)].content[-3:]


LATEST_PATH = HERE / snapshot_name(LATEST)


Refusal = tuple[Callable[[FaultyFiles], None], str]
"""The damage to the directory, and a part of the error's message."""


NO_SNAPSHOT = "starts at offset 12, and there is no snapshot at that offset or above"


REFUSALS: dict[str, Refusal] = {
    "a flushed batch is damaged": (flip(segment(18), 70), "everything below offset 20 was durable"),
    "a batch of an older segment is damaged": (flip(segment(12), 70), "later segments exist"),
    "a flushed batch is cut": (cut(segment(18), 100), "everything below offset 20 was durable"),
    "a flushed segment is empty": (cut(segment(18), 0), "no offsets 18 to 19"),
    "a segment between others is missing": (lose(f"{18:020d}.log"), "no offsets 18 to 19"),
    "the first segment is missing": (
        lose(f"{12:020d}.log", f"{20:020d}.log"),
        "starts at offset 18, and there is no snapshot at that offset or above",
    ),
    "all segments are missing": (
        lose(*(f"{base:020d}.log" for base in (12, 18, 20))),
        "from offset 16 on, the leader epochs of the batches differ",
    ),
    "batches are out of order": (swap_batches, "begins at offset 19 instead of 18"),
    "an epoch goes back": (add_older_epoch, "epoch 0 follows one of epoch 1"),
    "the flushed offset is damaged": (flip(FLUSHED, 5), "not a flushed offset"),
    "an epoch is missing": (put(EPOCHS, b"0\n2\n1 0\n"), "2 entries announced, 1 found"),
    "an epoch has no offset": (put(EPOCHS, b"0\n1\n1\n"), "malformed line '1'"),
    "the epochs do not increase": (
        put(EPOCHS, b"0\n2\n1 5\n1 6\n"),
        "epoch 1 does not come after 1",
    ),
    "the version of the epochs is no number": (put(EPOCHS, b"x\n0\n"), "malformed line 'x'"),
    "the epochs are of an unknown version": (put(EPOCHS, b"1\n0\n"), "unrecognised version 1"),
    "the epochs differ from flushed batches": (
        put(EPOCHS, b"0\n2\n1 12\n2 15\n"),
        "from offset 15 on, the leader epochs of the batches differ",
    ),
    "the directory is another topic's": (
        put(HERE / PARTITION_METADATA, encode_partition_metadata(b"x" * 16)),
        "the directory belongs to another topic",
    ),
    "partition.metadata is damaged": (
        put(HERE / PARTITION_METADATA, b"topic_id"),
        "not a partition metadata file",
    ),
    "partition.metadata is of an unknown version": (
        put(HERE / PARTITION_METADATA, b"version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"),
        "unrecognised version -1",
    ),
    "only a deleted snapshot covers the start": (lose(LATEST_PATH.name), NO_SNAPSHOT),
    "no snapshot covers the start": (
        lose(LATEST_PATH.name, snapshot_name(OLDER) + ".deleted"),
        "Restore the snapshot, or empty the directory",
    ),
    "the latest snapshot is damaged": (flip(LATEST_PATH, 100), "the checksum of the batch"),
    "the latest snapshot is cut": (cut(LATEST_PATH, 20), "it ends within a batch header"),
    "a snapshot ahead of the log is damaged": (add_rotten_snapshot_ahead, "it ends within a batch"),
}


def test_the_directory_opens_and_much_is_removed_and_mended() -> None:
    files = untidy()
    before = on_disk(files)
    log = open_log(files)
    assert len(log.recovery.removed_files) >= 4
    assert len(log.recovery.lines()) >= 6
    assert set(before) - set(on_disk(files))


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refused_start_changes_nothing(refusal: str) -> None:
    files = untidy()
    damage, message = REFUSALS[refusal]
    damage(files)
    before = on_disk(files)
    with pytest.raises(StorageError, match=message):
        open_log(files)
    assert on_disk(files) == before
    assert not [call for call in files.calls if call[0] in CHANGES]


def test_the_advice_for_a_missing_snapshot_can_be_followed() -> None:
    files = untidy()
    lose(LATEST_PATH.name)(files)
    marked = HERE / (snapshot_name(OLDER) + ".deleted")
    with pytest.raises(MissingSnapshotError) as caught:
        open_log(files)
    assert f"rename {marked.name} to {snapshot_name(OLDER)}" in str(caught.value)
    files.rename(marked, HERE / snapshot_name(OLDER))
    log = open_log(files)
    assert log.snapshots.ids() == [OLDER]
    assert log.log_end_offset == 20
    assert bytes(log.local_log.read(12, 10_000)) == b"".join(BATCHES[12:18])

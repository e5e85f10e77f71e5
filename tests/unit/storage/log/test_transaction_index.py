"""The index of aborted transactions: Kafka's bytes, lookups, truncation, and what a disk can do."""

from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles, MemoryFile

from kvorum.storage.errors import CorruptFileError, DiskError
from kvorum.storage.log.transaction_index import AbortedTransaction, TransactionIndex

FILE = Path("/data/topic-0/00000000000000000007.txnindex")
ONE = AbortedTransaction(1000, 7, 9, 10)
TWO = AbortedTransaction(5, 8, 20, 12)
THREE = AbortedTransaction(1000, 12, 25, 26)


def index_in(files: FaultyFiles) -> TransactionIndex:
    return TransactionIndex(FILE, 7, files=files)


def filled(files: FaultyFiles) -> TransactionIndex:
    index = index_in(files)
    for entry in (ONE, TWO, THREE):
        index.append(entry)
    return index


def test_an_entry_is_written_as_kafka_writes_it(files: FaultyFiles) -> None:
    index_in(files).append(ONE)
    assert bytes(files.names[FILE].content).hex() == (
        "000000000000000003e800000000000000070000000000000009000000000000000a"
    )


def test_no_file_exists_before_the_first_entry(files: FaultyFiles) -> None:
    index = index_in(files)
    index.truncate_to(0)
    index.reset()
    index.sync()
    index.close()
    assert index.entries == ()
    assert files.names == {}


def test_entries_are_there_after_opening_again(files: FaultyFiles) -> None:
    filled(files).close()
    again = index_in(files)
    again.append(AbortedTransaction(6, 26, 27, 28))
    assert again.entries[:3] == (ONE, TWO, THREE)
    assert len(index_in(files).entries) == 4


def test_a_part_of_an_entry_at_the_end_is_ignored_and_written_over(files: FaultyFiles) -> None:
    filled(files)
    del files.names[FILE].content[-1]
    index = index_in(files)
    assert index.entries == (ONE, TWO)
    index.append(THREE)
    assert index_in(files).entries == (ONE, TWO, THREE)


@pytest.mark.parametrize("marker", [20, 19])
def test_markers_must_ascend(files: FaultyFiles, marker: int) -> None:
    index = index_in(files)
    index.append(TWO)
    with pytest.raises(ValueError, match="does not follow"):
        index.append(AbortedTransaction(1, 8, marker, 21))
    assert index_in(files).entries == (TWO,)


@pytest.mark.parametrize(
    ("first", "end", "found", "is_complete"),
    [
        (0, 7, [], True),
        (0, 8, [ONE], True),
        (9, 10, [ONE], True),
        (10, 12, [TWO], True),
        (10, 13, [TWO, THREE], True),
        (0, 26, [ONE, TWO, THREE], True),
        (0, 27, [ONE, TWO, THREE], False),
        (26, 30, [], False),
    ],
)
def test_what_a_reader_must_know(
    first: int, end: int, found: list[AbortedTransaction], *, is_complete: bool
) -> None:
    assert filled(FaultyFiles()).find(first, end) == (tuple(found), is_complete)


def test_truncation_removes_markers_at_and_above_the_offset(files: FaultyFiles) -> None:
    index = filled(files)
    index.truncate_to(26)
    assert index.entries == (ONE, TWO, THREE)
    index.truncate_to(25)
    assert index.entries == index_in(files).entries == (ONE, TWO)
    index.append(THREE)
    index.truncate_to(0)
    assert len(files.names[FILE].content) == 0


def test_a_reset_removes_everything_even_what_cannot_be_read() -> None:
    files = FaultyFiles(names={FILE: MemoryFile(b"\x01" * 34)})
    index = index_in(files)
    index.reset()
    index.append(ONE)
    assert index_in(files).entries == (ONE,)


@pytest.mark.parametrize("version", [1, 256, -1])
def test_another_version_than_0_is_refused(files: FaultyFiles, version: int) -> None:
    filled(files)
    files.names[FILE].content[34:36] = version.to_bytes(2, "big", signed=True)
    with pytest.raises(CorruptFileError, match=rf"version {version} .*byte 34"):
        _ = index_in(files).entries


def test_a_marker_below_the_segment_is_found(files: FaultyFiles) -> None:
    filled(files).check()
    with pytest.raises(CorruptFileError, match="marker at offset 9"):
        TransactionIndex(FILE, 10, files=files).check()


def test_a_failed_write_leaves_the_entries_as_they_were(files: FaultyFiles) -> None:
    index = index_in(files)
    index.append(ONE)
    files.fail("write", 1)
    with pytest.raises(DiskError):
        index.append(TWO)
    assert index.entries == (ONE,)
    index.append(TWO)
    assert index_in(files).entries == (ONE, TWO)


def test_synced_entries_survive_a_power_cut(files: FaultyFiles) -> None:
    filled(files).sync()
    assert files.names[FILE].synced == bytes(files.names[FILE].content)

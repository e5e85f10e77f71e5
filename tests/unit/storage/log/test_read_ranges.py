"""Ranges of a log's files: where they begin and end, and what is not looked at."""

from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.local_logs import BASES, BATCHES, HERE, filled

from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.log_directory_files import LogDirectoryFiles
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import CorruptLogError, OffsetOutOfRangeError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.batch_header import read_header
from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.names import LOG_SUFFIX, offset_name

END = 20


def bytes_from(offset: int, *, end_offset: int = END) -> bytes:
    """Return the batches of the segment that holds `offset` from there on, each of one record."""
    base = max(base for base in BASES if base <= offset)
    end = min([other for other in BASES if other > base] + [END])
    return b"".join(BATCHES[offset : min(end, end_offset)])


@pytest.mark.parametrize("end_offset", [END, 13, 18, 1])
def test_a_range_is_what_the_log_holds_cut_by_bytes(end_offset: int) -> None:
    log = filled(FaultyFiles())
    for offset in range(end_offset):
        everything = bytes_from(offset, end_offset=end_offset)
        first = read_header(everything).size
        for max_bytes in (0, 1, first, first + 1, first + 70, 1 << 20):
            found = log.read_range(offset, max_bytes, end_offset=end_offset)
            assert found is not None
            assert bytes(found.records) == everything[: max(max_bytes, first)]


def test_nothing_is_read_at_the_end_and_beyond_what_may_be_read() -> None:
    log = filled(FaultyFiles())
    assert log.read_range(END, 100, end_offset=END) is None
    assert log.read_range(7, 100, end_offset=7) is None
    with pytest.raises(OffsetOutOfRangeError):
        log.read_range(END + 1, 100, end_offset=END)


def test_the_bound_of_a_range_is_the_next_entry_of_the_index() -> None:
    segment = filled(FaultyFiles()).segments[0]
    entries = list(segment.offset_index.entries())
    assert entries
    for position in range(segment.size + 2):
        behind = [offset for offset, place in entries if place >= position]
        assert segment.offset_beyond(position) == (behind[0] if behind else None)


def test_damaged_records_are_left_to_the_reader_and_damaged_headers_are_not() -> None:
    files = FaultyFiles()
    log = filled(files)
    path = HERE / offset_name(0, LOG_SUFFIX)
    content = files.names[path].content
    size = len(BATCHES[0])
    content[size - 1] ^= 1
    found = log.read_range(0, 1, end_offset=END)
    assert found is not None
    assert bytes(found.records) == bytes(content[:size])
    with pytest.raises(CorruptLogError):
        log.read(0, 1)
    content[16] = 7
    with pytest.raises(CorruptLogError, match="batch format 7"):
        log.read_range(0, 1, end_offset=END)


def test_a_range_of_a_log_directory_outlives_its_file(tmp_path: Path) -> None:
    """A broker sends such a range; without the descriptor there would be no sendfile."""
    failures: list[Path] = []
    channel = LogDirFailureChannel(lambda path, _: failures.append(path))
    files = LogDirectoryFiles(RealFileSystem(), tmp_path, channel, OpenFiles(1))
    path = tmp_path / "0.log"
    file = files.open(path, create=True)
    file.write_at(0, b"0123456789")
    records = FileRecords(file, 2, 5)
    file.close()
    files.remove(path)
    assert records.descriptor is not None
    assert bytes(records) == b"23456"
    assert failures == []

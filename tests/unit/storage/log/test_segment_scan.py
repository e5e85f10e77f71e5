"""Walking over batches in reads of any size, and what a damaged file does to a running log."""

from pathlib import Path

import pytest
from tests.support.batch_maker import make_batch, make_batches
from tests.support.faulty_files import FaultyFiles, MemoryFile

from kvorum.storage.errors import CorruptLogError, DiskError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log import segment_scan
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.segment_scan import BadBatchError, scan_batches
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.meta_properties import MetaProperties

HERE = Path("/log")
SEGMENT = HERE / f"{0:020d}.log"
BATCHES = [
    make_batch(0),
    make_batch(1, values=(b"x" * 700,)),
    make_batch(2, values=(b"y" * 90, b"z")),
    make_batch(4),
]


def scan(data: bytes, *, verify: bool = True) -> list[tuple[int, int]]:
    path = Path("/f")
    file = FaultyFiles(names={path: MemoryFile(data)}).open(path)
    found = scan_batches(file, end=len(data), verify=verify)
    return [(position, header.base_offset) for position, header in found]


@pytest.mark.parametrize("chunk_bytes", [*range(61, 75), 100, 200, 800, 10_000])
def test_batches_are_found_whatever_the_size_of_a_read(
    monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(segment_scan, "CHUNK_BYTES", chunk_bytes)
    positions = [sum(map(len, BATCHES[:index])) for index in range(4)]
    expected = list(zip(positions, [0, 1, 2, 4], strict=True))
    data = b"".join(BATCHES)
    assert scan(data) == expected
    assert scan(data, verify=False) == expected
    for size in range(len(data)):
        if size in positions:
            assert len(scan(data[:size])) == positions.index(size)
            continue
        with pytest.raises(BadBatchError) as caught:
            scan(data[:size])
        assert caught.value.position == max(start for start in positions if start <= size)


@pytest.mark.parametrize("chunk_bytes", [100, 10_000])
def test_a_wrong_checksum_is_found_whatever_the_size_of_a_read(
    monkeypatch: pytest.MonkeyPatch, chunk_bytes: int
) -> None:
    monkeypatch.setattr(segment_scan, "CHUNK_BYTES", chunk_bytes)
    data = bytearray(b"".join(BATCHES))
    data[len(BATCHES[0]) + 500] ^= 1
    with pytest.raises(BadBatchError, match="checksum"):
        scan(bytes(data))
    assert len(scan(bytes(data), verify=False)) == 4


def running_log() -> tuple[MetadataLog, bytearray]:
    files = FaultyFiles()
    config = LogConfig(index_interval_bytes=10_000)
    log = MetadataLog.open(HERE, files=files, config=config, now_ms=0)
    for batch in make_batches(0, 10):
        log.local_log.append(batch)
    return log, files.names[SEGMENT].content


def test_a_log_that_rots_while_it_is_open_says_so_on_reading() -> None:
    log, content = running_log()
    size = len(make_batch(0, values=(b"x" * 20,)))
    content[3 * size + 8] = 0xFF
    assert len(log.local_log.read(2, size)) == size
    for offset, max_bytes in ((5, 1), (0, 10_000)):
        with pytest.raises(CorruptLogError) as caught:
            log.local_log.read(offset, max_bytes)
        assert (caught.value.file, caught.value.offset) == (SEGMENT, 3 * size)


def test_a_log_that_was_shortened_while_it_is_open_says_so_on_reading() -> None:
    log, content = running_log()
    del content[200:]
    with pytest.raises(CorruptLogError, match="no batch holds offset 8"):
        log.local_log.read(8, 100)


def test_a_read_that_the_disk_refuses_does_not_poison_the_log() -> None:
    files = FaultyFiles()
    log = MetadataLog.open(HERE, files=files, now_ms=0).local_log
    log.append(make_batch(0))
    files.fail("read", 1)
    with pytest.raises(DiskError, match="reading failed"):
        log.read(0, 100)
    assert bytes(log.read(0, 100)) == make_batch(0)


def test_real_files_read_up_to_their_end(tmp_path: Path) -> None:
    file = RealFileSystem().open(tmp_path / "f", create=True)
    file.write_at(0, b"0123456789")
    assert file.read_at(4, 100) == b"456789"
    assert file.read_at(4, 3) == b"456"
    assert file.read_at(10, 3) == b""
    file.truncate(2)
    assert (file.size(), file.read_at(0, 10)) == (2, b"01")
    file.close()
    file.close()


def test_meta_properties_in_words() -> None:
    properties = MetaProperties(cluster_id="c", node_id=1, directory_id=bytes(16))
    text = "MetaProperties(version=1, clusterId=c, nodeId=1, directoryId=AAAAAAAAAAAAAAAAAAAAAA)"
    assert str(properties) == text
    assert str(MetaProperties(version=0)) == "MetaProperties(version=0)"
